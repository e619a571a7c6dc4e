"""data/readings.yaml: what of BBRv2 and BBRv3 was chosen after a comparison with measurements."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from bbrlab.base import paths
from bbrlab.base.strict import Strict, read_model

Version = Literal["bbr2", "bbr3"]
FILE = "readings.yaml"


class _Readings(Strict):
    """The file: for each version a sentence."""

    bbr2: str = Field(min_length=10)
    bbr3: str = Field(min_length=10)


@functools.cache
def _readings() -> _Readings:
    return read_model(paths.DATA / FILE, _Readings)


def later_choices(own: str | None, versions: Iterable[Version]) -> str:
    """What was chosen after a comparison, in words; empty if nothing was. UserError if the file is not as it should be."""
    sentences = [own[0].upper() + own[1:].removesuffix(".") + "."] if own else []
    return " ".join([*sentences, *(getattr(_readings(), version) for version in versions)])
