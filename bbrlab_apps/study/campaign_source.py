"""The two campaigns of ``bbrlab compare``: the folder of each one's results, and the command that makes them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from bbrlab.base import paths, python
from bbrlab.base.errors import UserError
from bbrlab.kernel.specs import find_spec
from bbrlab.results.config import check_keys, in_checkout, load_config, name_in_checkout
from bbrlab.results.figures import figures_at, lacking_ccas
from bbrlab.results.replacement import Replacement, parse_replacement
from bbrlab.results.schema import read_with
from bbrlab.results.tables import IDENTITY


@dataclass(frozen=True)
class CampaignSource:
    """One of the two campaigns."""

    name: str
    folder: Path
    # The value of BBRLAB_RESULTS for which they come there: the folder, or one above it if the settings replace an algorithm
    home: Path
    # For ``snakemake --config``; None for a folder of results that is only read
    settings: dict[str, str] | None = field(default_factory=dict)

    @property
    def swap(self) -> Replacement | None:
        """The replacement of an algorithm in its settings."""
        text = (self.settings or {}).get("replace")
        return parse_replacement(text) if text else None

    def table(self, scale: str, figure: str) -> Path:
        """The path of a figure's table."""
        return self.folder / scale / f"{figure}.parquet"

    def command(self, scale: str, figures: Iterable[str], cores: int) -> list[str]:
        """The command that makes the tables of these figures, with BBRLAB_RESULTS set to ``home``."""
        settings = {**(self.settings or {}), "scale": scale}
        targets = [name_in_checkout(self.table(scale, figure)) for figure in figures]
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
    """The two campaigns that ``--kernel``, ``--results`` and ``--config`` name, in this order.

    Each campaign with settings has its own folder below results/compare, so that neither makes the other's runs anew. UserError if
    they are not two, or one is invalid.
    """
    sources = []
    for name in kernels:
        find_spec(name)
        place = _place(f"kernel={name}")
        sources.append(CampaignSource(name, place, place, {"kernel": name}))
    for folder in results:
        if not folder.is_dir():
            raise UserError(f"--results {folder}: there is no such folder")
        sources.append(CampaignSource(str(folder), folder.absolute(), folder.absolute(), None))
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
        source = CampaignSource(text, paths.replaced_folder(home, parts.get("replace")), home, parts)
        _ = source.swap  # UserError if it is invalid
        sources.append(source)
    if len(sources) != 2:
        raise UserError(
            f"give two sides, not {len(sources)}: --kernel A --kernel B, --config 'KEY=VALUE ...' or --results FOLDER"
        )
    if sources[0].folder == sources[1].folder:
        raise UserError(f"both sides are {sources[0].name}")
    return sources[0], sources[1]


def left_out(source: CampaignSource, scale: str, figures: list[str]) -> dict[str, list[str]]:
    """{figure: its CCAs that the campaign's kernel lacks}, of figures that the campaign cannot run."""
    if source.settings is None:
        return {}
    kernel = source.settings.get("kernel") or load_config().kernel
    lacking = {figure.id: lacking_ccas(figure, kernel) for figure in figures_at(scale, figures, source.swap)}
    return {figure: ccas for figure, ccas in lacking.items() if ccas}


def _place(name: str) -> Path:
    return paths.results_folder() / "compare" / name.replace("/", "-").replace(" ", ",")


def run_side(source: CampaignSource, scale: str, figures: list[str], cores: int) -> None:
    """Run a campaign; existing runs are kept. UserError if it fails."""
    environment = {**os.environ, "BBRLAB_RESULTS": str(source.home)}
    with python.start(*source.command(scale, figures, cores), env=environment) as campaign:
        failed = campaign.wait()
    if failed:
        raise UserError(f"the campaign of {source.name} failed; its output is above, and in {source.folder / 'logs'}")


def tables_at(source: CampaignSource, scale: str, figures: list[str], cores: int) -> dict[str, pd.DataFrame]:
    """The tables of a campaign. UserError with the command that makes missing ones."""
    missing = [figure for figure in figures if not source.table(scale, figure).exists()]
    if missing:
        problem = f"{source.folder} has no table of {missing[0]} at scale {scale}"
        if source.settings is None:
            raise UserError(problem)
        command = shlex.join(source.command(scale, missing, cores))
        again = in_checkout(f"BBRLAB_RESULTS={shlex.quote(str(source.home))} {command}")
        raise UserError(f"{problem}; add --run, or run: {again}")
    # Metrics that only one of the two has are left out: they may be of different versions.
    return {figure: read_with(source.table(scale, figure), IDENTITY) for figure in figures}


def figures_with_tables(source: CampaignSource, scale: str) -> set[str]:
    """The figures of which a campaign has a table."""
    names = (p.relative_to(source.folder / scale) for p in (source.folder / scale).glob("*/*.parquet"))
    return {f"{p.parent}/{p.stem}" for p in names if "." not in p.stem and str(p.parent) != "ns3"}


def kernels_of(tables: Iterable[pd.DataFrame]) -> list[str]:
    """The kernels of the runs, each with its key."""
    kernels = (
        f"{r.kernel} {r.kernel_key}" for t in tables for r in t[["kernel", "kernel_key"]].drop_duplicates().itertuples()
    )
    return sorted(set(kernels))
