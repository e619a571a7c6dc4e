"""The two campaigns of ``bbrlab compare``: where the results of each are, and what makes them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from bbrlab.base import paths, python
from bbrlab.base.errors import UserError
from bbrlab.base.paths import name_of
from bbrlab.kernel.specs import find_spec
from bbrlab.results.config import check_keys, load_config
from bbrlab.results.figures import figures_at, lacking_ccas
from bbrlab.results.replacement import Replacement, parse_replacement
from bbrlab.results.schema import read_with
from bbrlab.results.tables import IDENTITY


@dataclass(frozen=True)
class CampaignSource:
    """One of the two campaigns.

    Attributes:
        name: what the user calls it.
        folder: of its results.
        home: what BBRLAB_RESULTS has to name for them to come there: the folder, or one above it where the settings put one
            algorithm in the place of another.
        settings: what its campaign is configured with, for ``snakemake --config``; None for a folder of results that is
            only read.
    """

    name: str
    folder: Path
    home: Path
    settings: dict[str, str] | None = field(default_factory=dict)

    @property
    def swap(self) -> Replacement | None:
        """The algorithm that its settings put in the place of another."""
        text = (self.settings or {}).get("replace")
        return parse_replacement(text) if text else None

    def table(self, scale: str, figure: str) -> Path:
        """Where the table of a figure is."""
        return self.folder / scale / f"{figure}.parquet"

    def command(self, scale: str, figures: Iterable[str], cores: int) -> list[str]:
        """The campaign that makes the tables of these figures; BBRLAB_RESULTS names the folder."""
        settings = {**(self.settings or {}), "scale": scale}
        targets = [name_of(self.table(scale, figure)) for figure in figures]
        return [
            "snakemake",
            "--cores",
            str(cores),
            "--config",
            *(f"{k}={v}" for k, v in settings.items()),
            "--",
            *targets,
        ]


def sources_of(kernels: list[str], results: list[Path], settings: list[str]) -> tuple[CampaignSource, CampaignSource]:
    """The two sides that ``--kernel``, ``--results`` and ``--config`` name, in this order.

    Each campaign with settings has a folder of results of its own below results/compare, so that neither makes the other's
    runs anew.

    Raises:
        UserError: if they are not two, or one is not possible.
    """
    found = []
    for name in kernels:
        find_spec(name)
        place = _place(f"kernel={name}")
        found.append(CampaignSource(name, place, place, {"kernel": name}))
    for folder in results:
        if not folder.is_dir():
            raise UserError(f"--results {folder}: there is no such folder")
        found.append(CampaignSource(str(folder), folder.absolute(), folder.absolute(), None))
    for text in settings:
        try:
            parts = dict(item.partition("=")[::2] for item in shlex.split(text))
        except ValueError:  # a quotation mark without its other one
            parts = {}
        if not parts or not all(k and v for k, v in parts.items()) or "scale" in parts:
            raise UserError(
                f"--config '{text}': give KEY=VALUE of config/config.yaml, several with spaces between; scale is --scale"
            )
        check_keys(parts)
        home = _place(" ".join(f"{k}={v}" for k, v in parts.items()))
        side = CampaignSource(text, paths.replaced_folder(home, parts.get("replace")), home, parts)
        _ = side.swap  # says what is wrong with it
        found.append(side)
    if len(found) != 2:
        raise UserError(
            f"give two sides, not {len(found)}: --kernel A --kernel B, --config 'KEY=VALUE ...' or --results FOLDER"
        )
    if found[0].folder == found[1].folder:
        raise UserError(f"both sides are {found[0].name}")
    return found[0], found[1]


def left_out(side: CampaignSource, scale: str, figures: list[str]) -> dict[str, list[str]]:
    """{figure: the CCAs that it has and the side's kernel lacks}, of those that the side cannot run."""
    if side.settings is None:
        return {}
    kernel = side.settings.get("kernel") or load_config().kernel
    lacking = {figure.id: lacking_ccas(figure, kernel) for figure in figures_at(scale, figures, side.swap)}
    return {figure: ccas for figure, ccas in lacking.items() if ccas}


def _place(name: str) -> Path:
    return paths.results_folder() / "compare" / name.replace("/", "-").replace(" ", ",")


def run_side(side: CampaignSource, scale: str, figures: list[str], cores: int) -> None:
    """Run a side's campaign: what is there already is not run again. UserError if it fails."""
    environment = {**os.environ, "BBRLAB_RESULTS": str(side.home)}
    with python.start(*side.command(scale, figures, cores), env=environment) as campaign:
        failed = campaign.wait()
    if failed:
        raise UserError(f"the campaign of {side.name} failed; what it says stands above, and in {side.folder / 'logs'}")


def tables_at(side: CampaignSource, scale: str, figures: list[str], cores: int) -> dict[str, pd.DataFrame]:
    """The tables of a side. UserError with the command that makes what is missing."""
    missing = [figure for figure in figures if not side.table(scale, figure).exists()]
    if missing:
        what = f"{side.folder} has no table of {missing[0]} at scale {scale}"
        if side.settings is None:
            raise UserError(what)
        command = shlex.join(side.command(scale, missing, cores))
        raise UserError(f"{what}; add --run, or run: BBRLAB_RESULTS={shlex.quote(str(side.home))} {command}")
    # Metrics that one side has and the other has not are left out: commits are compared, too.
    return {figure: read_with(side.table(scale, figure), IDENTITY) for figure in figures}


def figures_with_tables(side: CampaignSource, scale: str) -> set[str]:
    """The figures of which a side has a table."""
    found = (p.relative_to(side.folder / scale) for p in (side.folder / scale).glob("*/*.parquet"))
    return {f"{p.parent}/{p.stem}" for p in found if "." not in p.stem and str(p.parent) != "ns3"}


def kernels_of(tables: Iterable[pd.DataFrame]) -> list[str]:
    """The kernels of the runs, each with its key."""
    named = (
        f"{r.kernel} {r.kernel_key}" for t in tables for r in t[["kernel", "kernel_key"]].drop_duplicates().itertuples()
    )
    return sorted(set(named))
