"""What a campaign consists of: figures at a scale, their points, and the folder of each run.

A run's folder is named by the swept values and a fingerprint of everything that decides its outcome. So a point that
has not changed is never run twice, whichever scale or sweep it belongs to, and a changed one never takes an old result.
"""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import dump_yaml
from bbrlab.kernel.own import OwnCca, own_of
from bbrlab.kernel.specs import find_spec
from bbrlab.results.algorithms import draws_nothing
from bbrlab.results.config import Config, load_config
from bbrlab.results.cost import packets_of
from bbrlab.results.replacement import Replacement, replacement
from bbrlab.scenario.load import load_points, points_of
from bbrlab.scenario.point import Point
from bbrlab.scenario.scales import at_scale
from bbrlab.scenario.schema import GRID, Override, Scenario

# What Snakemake's rules and their wildcards can be called by.
PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_-]*")
# What the workflow has already: its rules' names, since a paper and a figure are targets too, and what lies beside the papers.
TAKEN = frozenset(
    "all burst_notebook burst_prediction claims collect container figure_claims fluid_prediction kernel models_notebook notebook "
    "overview_notebook own_kernel paper_claims points run scorecard seeds sif site verdicts "
    "burst figures models ns3 overview statements".split()
)
# The swept fields of a panel (has_panel()) and its columns.
PANEL_KEYS = {"network.buffer.bdp": "buffer_bdp", "flows.0.count": "bbr_flows"}
ABLE_MAX = 5  # figures that a message names
REPEATS = 2  # seeds of a point that draws nothing: the second shows that it measures the same


@dataclass(frozen=True)
class Figure:
    """A figure at a scale.

    Attributes:
        id: paper/name.
        trials: seeds 1..trials for each point to begin with, but for those that draw nothing (trials_of()).
        seeds_cap: up to so many where its claims need more.
        seeds_packets: a point of which a run carries so many packets (cost.packets_of()) may have one more than the trials,
            others more or fewer, as one over the root of their packets.
    """

    id: str
    scenario: Scenario
    points: list[Point]
    trials: int
    seeds_cap: int = 0
    seeds_packets: float = math.inf

    @functools.cached_property
    def caps(self) -> dict[str, int]:
        """{point label: how many seeds it may have}."""
        return {p.label: self._cap(p) for p in self.points}

    def trials_of(self, point: Point) -> int:
        """How many seeds a point has to begin with: fewer than the figure's trials if no seed is expected to change anything."""
        return min(self.trials, REPEATS) if draws_nothing(point.scenario) else self.trials

    def _cap(self, point: Point) -> int:
        more = max(0, self.seeds_cap - self.trials)
        # Of equal spread, this is how many of each dear and cheap kind tell most for the same cost (Cochran, Sampling
        # Techniques, 3rd edition 1977, section 5.5: in proportion to the spread over the root of the cost).
        return self.trials + int(min(more, math.sqrt(self.seeds_packets / packets_of(point.scenario))))


@dataclass(frozen=True)
class Run:
    """One point with one seed and the folder of its result."""

    figure: str
    point: Point
    seed: int
    folder: Path


def scenario_files() -> dict[str, Path]:
    """{paper/figure: scenario file} of everything under scenarios/."""
    return {f"{p.parent.name}/{p.stem}": p for p in sorted(paths.SCENARIOS.glob("*/*.yaml"))}


def figures_at(
    scale: str | None = None, chosen: list[str] | str | None = None, swap: Replacement | None = None
) -> list[Figure]:
    """The figures of a campaign.

    Args:
        scale: entry of config.yaml's ``scales``; default: its ``scale``.
        chosen: "paper", "paper/figure", or "figure" for all papers' that have one so called, one or several; default: config.yaml's ``figures``, or all.
        swap: an algorithm in the place of another; default: what this process replaces (results/replacement.py).

    Raises:
        UserError: for an unknown scale or figure, or a scenario that is not valid.
    """
    config = load_config()
    scale = scale or config.scale
    if not isinstance(scale, str) or scale not in config.scales:
        raise UserError(f"scale {scale}: no such scale; config/config.yaml has {', '.join(config.scales)}")
    known = scenario_files()
    chosen = [chosen] if isinstance(chosen, str) else chosen  # as --config figures=NAME gives it
    wanted = []
    for name in chosen or config.figures or list(known):
        matching = [k for k in known if name in (k, *k.split("/"))]
        if not matching:
            raise UserError(f"there is no figure or paper '{name}'{_meant(name, known)}")
        wanted += matching
    swap = swap or replacement()
    found = [_scaled(name, known[name], scale, config, swap) for name in dict.fromkeys(wanted)]
    there = {name for f in found if f is not None for name in (f.id, *f.id.split("/"))}
    if missing := [name for name in chosen or [] if name not in there]:
        raise UserError(f"{missing[0]} is not part of scale {scale}; choose another with --config scale=...")
    return [f for f in found if f is not None]


def _meant(name: str, known: Iterable[str]) -> str:
    """What somebody may have meant who typed a name that is no figure's and no paper's."""
    of_papers: dict[str, list[str]] = {}
    for id in known:
        of_papers.setdefault(id.split("/")[0], []).append(id)
    paper = name.split("/", maxsplit=1)[0]
    there = of_papers.get(paper, list(of_papers))
    more = "" if paper in of_papers else "; their figures are the files in scenarios/"
    names = sorted({part for id in known for part in (id, *id.split("/"))})
    close = difflib.get_close_matches(name, names, 1)
    return f"{f', did you mean {close[0]}?' if close else ''} (there are {', '.join(there)}{more})"


def _scaled(name: str, path: Path, scale_name: str, config: Config, swap: Replacement | None = None) -> Figure | None:
    """A figure at a scale; None if the scale leaves it out."""
    scale = config.scales[scale_name]
    if not PLACE.fullmatch(name):
        raise UserError(
            f"{path}: a paper's folder and a figure's file have names of the letters A to Z, digits, - and _ (a folder also .); "
            "give it another name"
        )
    if taken := sorted(TAKEN & {*name.split("/")}):
        raise UserError(f"{path}: '{taken[0]}' is a name of the workflow's own; give the paper or the figure another")
    scenario, whole = load_points(path)
    if f"{scenario.paper}/{scenario.name}" != name:
        raise UserError(
            f"{path}: must say paper: {name.split('/', maxsplit=1)[0]} and name: {name.split('/')[1]}, as its place says"
        )
    check_names(scenario, config, path)
    scaled = at_scale(scenario, scale_name, path)
    if scaled is None:
        return None
    points = whole if scaled is scenario else points_of(scaled, str(path))
    if swap is not None:
        scaled, points = swap.of_scenario(scaled), [swap.of_point(point) for point in points]
    override = scenario.scales.get(scale_name, Override())
    trials = override.trials or min(scaled.trials, scale.trials or scaled.trials)
    return Figure(
        name,
        scaled,
        points,
        trials,
        max(trials, scale.seeds_cap or trials),
        scale.seeds_packets or math.inf,
    )


def check_names(scenario: Scenario, config: Config, path: Path) -> None:
    """UserError if a scenario has something for a scale that there is not."""
    for given in scenario.scales:
        if given not in config.scales:
            raise UserError(f"{path}: scales.{given}: no such scale; config/config.yaml has {', '.join(config.scales)}")


def lacking_ccas(figure: Figure, kernel_name: str | None = None) -> list[str]:
    """The CCAs of a figure that a kernel lacks and that are not one's own. UserError if there is no such kernel."""
    own = {cca.name for cca in own_of_figure(figure, kernel_name)}
    return sorted(_used(figure) - set(find_spec(kernel_name)[1].names) - own)


def check_ccas(chosen: Iterable[Figure], kernel_name: str | None = None) -> None:
    """UserError, naming file and line, if a figure has a CCA that the kernel lacks and that is not one's own, or there is no
    such kernel."""
    name, spec = find_spec(kernel_name)
    chosen = list(chosen)
    for figure in chosen:
        for cca in lacking_ccas(figure, kernel_name):
            path = scenario_files()[figure.id]
            number = next((i for i, t in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if cca in t), 1)
            able = [f.id for f in chosen if not lacking_ccas(f, kernel_name)]
            which = f", or ask for figures that it can run: {', '.join(able[:ABLE_MAX])}" if able else ""
            raise UserError(
                f"{path}:{number}: kernel {name} has no {cca} (it has {', '.join(sorted(spec.names))}); "
                f"choose another with --config kernel=... (bbrlab kernel list){which}"
                + (f" ... ({len(able)} in all)" if len(able) > ABLE_MAX else "")
            )


def own_of_figure(figure: Figure, kernel_name: str | None = None) -> list[OwnCca]:
    """The algorithms of one's own that a figure's flows have: one kernel with all of them runs all its points."""
    return own_of(_used(figure), kernel_name)


def _used(figure: Figure) -> set[str]:
    return {flow.cca for point in figure.points for flow in point.scenario.flows}


def runs_of(figure: Figure, seeds: Mapping[str, int] | None = None, results: Path | None = None) -> list[Run]:
    """Every run of a figure.

    Args:
        seeds: {point label: how many, from 1 on}; a point that is not in it has what it begins with (Figure.trials_of()).
        results: default: the results folder.
    """
    results = results or paths.results_folder()
    counts = seeds or {}
    return [
        Run(figure.id, point, seed, results / "runs" / figure.id / point.label / f"seed-{seed}")
        for point in figure.points
        for seed in range(1, counts.get(point.label, figure.trials_of(point)) + 1)
    ]


def write_points(figure: Figure, results: Path | None = None) -> dict[str, Path]:
    """Write one file per point for the workflow, untouched if it is there already. Returns {label: file}."""
    written = {}
    results = results or paths.results_folder()
    for point in figure.points:
        path = results / "points" / figure.id / f"{point.label}.yaml"
        content = {"scenario": point.scenario.model_dump(exclude=GRID, exclude_unset=True), "values": point.values}
        files.write_if_changed(path, dump_yaml(content, sort_keys=True))
        written[point.label] = path
    return written


def has_panel(figure: Figure) -> bool:
    """Whether a figure is one of N BBR flows against loss-based ones, with a published table."""
    if set(figure.scenario.sweep) != set(PANEL_KEYS) or figure.scenario.cases:
        return False
    path = paths.DATA / f"{figure.id}.csv"
    return path.exists() and "share_of_capacity" in path.read_text(encoding="utf-8").split("\n", 1)[0].split(",")
