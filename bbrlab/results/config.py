"""config/config.yaml."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.problems import unknown_key
from bbrlab.base.strict import Strict, read_model

FULL = "full"  # the scale that leaves no figure out
CORES = 2  # in commands in texts
REPLACE = "replace"  # of the command line only
SCALES = "scales"  # of the file only


class Scale(Strict):
    """One scale: its purpose and its trials; what it changes is in each scenario's ``scales``."""

    description: str = Field(description="for people")
    trials: Annotated[int, Field(ge=1)] | None = Field(
        None, description="at most so many trials; default: the scenario's"
    )
    seeds_cap: Annotated[int, Field(ge=1)] | None = Field(
        None, description="points whose claims need more seeds than trials get up to so many; default: no more"
    )
    seeds_packets: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="a limit on cost: a point whose run carries this many full-size packets (rate times duration) may get one further "
        "seed; with a quarter of them two, with a ninth three (the number goes as one over the root of the cost: Cochran, Sampling "
        "Techniques, 1977, 5.5). It is computed from the scenario, so that every machine runs the same. Default: no limit",
    )

    @model_validator(mode="after")
    def _limits_something(self) -> Scale:
        if self.seeds_packets is not None and self.seeds_cap is None:
            raise ValueError("seeds_packets would have no effect without seeds_cap, whose seeds it limits; give both")
        return self


class Config(Strict):
    """What `config/config.yaml` says of a campaign."""

    scale: str = Field(description="one of scales: how much of each figure is run")
    kernel: str | None = Field(None, description="entry of kernels.yaml; default: its default")
    figures: list[str] = Field([], description="paper, or paper/figure; empty: all of scenarios/")
    cache_gb: Annotated[float, Field(gt=0)] = Field(
        50,
        description="GB that the cache of runs, if there is one, should not exceed: the dry run warns, and `bbrlab cache prune` keeps so much",
    )
    scales: dict[str, Scale] = Field(description="by name")


def load_config(path: Path | None = None) -> Config:
    """config/config.yaml, checked. UserError naming file, field and value."""
    return read_model(path or paths.CONFIG / "config.yaml", Config)


def command_for(target: str, scale: str) -> str:
    """The shortest command that runs a target of the workflow at a scale, in the checkout; in messages: in_checkout().

    Args:
        target: ``all``, a paper, or PAPER/FIGURE (a figure's name alone would run the figures of this name of all papers).
    """
    chosen = "" if scale == load_config().scale else f"--config scale={scale} -- "
    return f"snakemake --cores {CORES} {chosen}{target}"


def command_in(results: Path, target: str, scale: str) -> str:
    """command_for() that writes to a folder of results."""
    variable = (
        ""
        if results.absolute() == paths.results_folder()
        else f"BBRLAB_RESULTS={shlex.quote(str(results.absolute()))} "
    )
    return variable + command_for(target, scale)


def in_checkout(command: str) -> str:
    """A command of the workflow as it is typed in this working folder: snakemake finds its files in the checkout alone."""
    here = os.path.samefile(os.curdir, paths.ROOT)
    return command if here else f"cd {shlex.quote(str(paths.ROOT))} && {command}"


def name_in_checkout(path: Path) -> str:
    """A file as the workflow, which runs in the checkout, calls it."""
    return str(path.relative_to(paths.ROOT) if path.is_relative_to(paths.ROOT) else path)


def check_keys(keys: Iterable[str]) -> None:
    """UserError for an unknown key of ``--config``, with the closest known one."""
    valid = [key for key in (*Config.model_fields, REPLACE) if key != SCALES]
    for key in keys:
        if key not in valid:
            raise UserError(f"--config {key}: {unknown_key(key, valid)}")
