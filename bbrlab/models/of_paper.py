"""Reads data/PAPER/models.yaml: a paper's settings for the models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bbrlab.base import paths
from bbrlab.base.strict import Strict, read_model


class PaperModels(Strict):
    """A paper's models.yaml; without one, the defaults."""

    link_share_of_rtt: Annotated[float, Field(gt=0, le=0.5)] = Field(
        0.25, description="the bottleneck link's one-way delay over the smallest base RTT; the fluid model needs it"
    )
    fluid_of: dict[str, str] = Field({}, description="{figure: the figure whose fluid predictions stand beside it}")


def models_of(paper: str) -> PaperModels:
    """A paper's models.yaml. UserError if the file is invalid."""
    path = paths.DATA / paper / "models.yaml"
    return read_model(path, PaperModels) if paper and path.exists() else PaperModels()
