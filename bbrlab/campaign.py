"""What a campaign consists of: figures at a scale, their points, the folder of each run, and how long it will take.

A run's folder is named by the swept values and a fingerprint of everything that decides its outcome. So a point that
has not changed is never run twice, whichever scale or sweep it belongs to, and a changed one never takes an old result.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError

from bbrlab import files, kernel, paths
from bbrlab.errors import UserError
from bbrlab.scenario import (
    FRAME_BYTES,
    GRID,
    Flow,
    Override,
    Point,
    Scenario,
    Strict,
    load,
    points,
    read_yaml,
    validate,
)

# Wall-clock model of a run, fitted to 554 runs of every figure on two busy cores, and .8 s for the job around it
# (docs/benchmarks.md).
SETUP_S = 2.5
SECONDS_PER_HOST = 0.29
SECONDS_PER_FLOW = 0.04
SECONDS_PER_PACKET = 4.9e-6
SECONDS_PER_FLOW_SAMPLE = 8.6e-5
# Of short flows: a run of 15 minutes with 288,853 of them, mean size as the traffic model has it.
SECONDS_PER_SHORT_FLOW = 1.2e-3
SHORT_FLOW_BYTES = 487e3


class Scale(Strict):
    """One scale: what it is for and how many trials at most; what it changes stands in each scenario's ``scales``."""

    description: str
    trials: Annotated[int, Field(ge=1)] | None = Field(
        None, description="at most so many trials; default: the scenario's"
    )


class Config(Strict):
    """config/config.yaml."""

    scale: str
    kernel: str | None = None
    figures: list[str] = Field([], description="paper/figure ...; empty: all")
    scales: dict[str, Scale]


@dataclass(frozen=True)
class Figure:
    """A figure at a scale: ``id`` is paper/name, ``trials`` seeds 1..trials for each point."""

    id: str
    scenario: Scenario
    points: list[Point]
    trials: int


@dataclass(frozen=True)
class Run:
    """One point with one seed and the folder of its result."""

    figure: str
    point: Point
    seed: int
    folder: Path


def load_config(path: Path | None = None) -> Config:
    """config/config.yaml, checked. UserError naming file, field and value."""
    path = path or paths.CONFIG / "config.yaml"
    try:
        return Config.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(
            f"{path}: {'.'.join(str(p) for p in first['loc'])}: {first['msg']} (found {first['input']!r})"
        ) from None


def scenario_files() -> dict[str, Path]:
    """{paper/figure: scenario file} of everything under scenarios/."""
    return {f"{p.parent.name}/{p.stem}": p for p in sorted(paths.SCENARIOS.glob("*/*.yaml"))}


def figures(scale: str | None = None, chosen: list[str] | None = None) -> list[Figure]:
    """The figures of a campaign.

    Args:
        scale: entry of config.yaml's ``scales``; default: its ``scale``.
        chosen: "paper/figure" or "paper"; default: config.yaml's ``figures``, or all.

    Raises:
        UserError: for an unknown scale or figure, or a scenario that is not valid.
    """
    config = load_config()
    scale = scale or config.scale
    if scale not in config.scales:
        raise UserError(f"scale {scale}: no such scale; config/config.yaml has {', '.join(config.scales)}")
    known = scenario_files()
    wanted = []
    for name in chosen or config.figures or list(known):
        matching = [k for k in known if k == name or k.split("/")[0] == name]
        if not matching:
            raise UserError(f"there is no figure or paper '{name}' (there are {', '.join(known)})")
        wanted += matching
    found = [_scaled(name, known[name], scale, config) for name in dict.fromkeys(wanted)]
    missing = [n for n, f in zip(dict.fromkeys(wanted), found, strict=True) if f is None and n in (chosen or [])]
    if missing:
        raise UserError(f"{missing[0]} is not part of scale {scale}; choose another with --config scale=...")
    return [f for f in found if f is not None]


def _scaled(name: str, path: Path, scale_name: str, config: Config) -> Figure | None:
    """A figure at a scale; None if the scale leaves it out."""
    scale = config.scales[scale_name]
    scenario = load(path)
    if f"{scenario.paper}/{scenario.name}" != name:
        raise UserError(
            f"{path}: must say paper: {name.split('/', maxsplit=1)[0]} and name: {name.split('/')[1]}, as its place says"
        )
    for given in scenario.scales:
        if given not in config.scales:
            raise UserError(f"{path}: scales.{given}: no such scale; config/config.yaml has {', '.join(config.scales)}")
    override = scenario.scales.get(scale_name, Override())
    if override.skip:
        return None
    content = scenario.model_dump(exclude_unset=True)
    for key in ("duration_s", "window_s"):
        if getattr(override, key) is not None:
            content[key] = getattr(override, key)
    for key in ("sweep", "cases"):
        wrong = [k for k in getattr(override, key) or () if k not in getattr(scenario, key)]
        if wrong:
            raise UserError(f"{path}: scales.{scale_name}.{key}: '{wrong[0]}' is not in the scenario's {key}")
    if override.sweep is not None:
        content["sweep"] = {k: override.sweep.get(k, v) for k, v in scenario.sweep.items()}
    if override.cases is not None:
        content["cases"] = {k: v for k, v in scenario.cases.items() if k in override.cases}
    scaled = validate(content, f"{path} (at scale {scale_name})")
    trials = override.trials or min(scaled.trials, scale.trials or scaled.trials)
    return Figure(name, scaled, points(scaled, str(path)), trials)


def check_ccas(chosen: Iterable[Figure], kernel_name: str | None = None) -> None:
    """UserError, naming file and line, if a figure has a CCA that the kernel lacks, or there is no such kernel."""
    name, spec = kernel.find_spec(kernel_name)
    for figure in chosen:
        used = {flow.cca for point in figure.points for flow in point.scenario.flows}
        for cca in sorted(used - set(spec.names)):
            path = scenario_files()[figure.id]
            number = next((i for i, t in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if cca in t), 1)
            raise UserError(
                f"{path}:{number}: kernel {name} has no {cca} (it has {', '.join(sorted(spec.names))}); "
                "choose another with --config kernel=... (config/kernels.yaml lists them)"
            )


def targets(chosen: Iterable[str]) -> dict[str, list[str]]:
    """What one may ask the workflow for: {paper, or figure's name: figures}, a name of several papers' figures for all."""
    found: dict[str, list[str]] = {}
    for id in chosen:
        for name in id.split("/"):
            found.setdefault(name, []).append(id)
    return found


def asked_for(chosen: Iterable[str], names: Iterable[str]) -> list[str]:
    """The figures that the words of a command line ask for; all if none does.

    A word is a name of targets(), or a file of a figure's or a paper's results (results/full/tang/fig2.csv).
    """
    known = targets(chosen) | {id: [id] for id in chosen}
    wanted: dict[str, None] = {}
    for name in names:
        path = Path(name)
        stem = path.name.split(".")[0]
        words = [f"{path.parent.name}/{stem}", stem] if path.suffix else [name]
        wanted |= dict.fromkeys(next((known[w] for w in words if w in known), []))
    return list(wanted or chosen)


def runs(figure: Figure, results: Path | None = None) -> list[Run]:
    """Every run of a figure."""
    results = results or paths.ROOT / "results"
    return [
        Run(figure.id, point, seed, results / "runs" / figure.id / point.label / f"seed-{seed}")
        for point in figure.points
        for seed in range(1, figure.trials + 1)
    ]


def _volume_bytes(flow: Flow, duration_s: float) -> float | None:
    """How much a group of flows has to send; None if there is no end to it."""
    if flow.traffic is not None:
        return flow.traffic.offered_mbit * 1e6 / 8 * duration_s
    return None if flow.bytes is None else float(flow.count * flow.bytes)


def estimate_s(point: Point) -> float:
    """Expected wall-clock seconds of one run on one core."""
    scenario = point.scenario
    carried = scenario.network.rate_mbit * 1e6 / 8 * scenario.duration_s
    volumes = [_volume_bytes(f, scenario.duration_s) for f in scenario.flows]
    if None not in volumes:
        carried = min(carried, sum(v for v in volumes if v is not None))
    samples = scenario.sample_hz * scenario.duration_s
    flows = sum(f.count for f in scenario.flows)
    short = sum(v for f, v in zip(scenario.flows, volumes, strict=True) if f.traffic is not None and v is not None)
    return (
        SETUP_S
        + SECONDS_PER_HOST * (1 + sum(_senders(f, scenario) for f in scenario.flows))
        + SECONDS_PER_FLOW * flows
        + SECONDS_PER_PACKET * carried / FRAME_BYTES
        + SECONDS_PER_FLOW_SAMPLE * samples * flows
        + SECONDS_PER_SHORT_FLOW * short / SHORT_FLOW_BYTES
    )


def _senders(flow: Flow, scenario: Scenario) -> int:
    """Hosts that a group of flows needs: one for each RTT, or those that take turns."""
    if flow.traffic is not None:
        return flow.traffic.senders
    return flow.count if isinstance(flow.rtt_ms or scenario.network.rtt_ms, list) else 1


_lock = None  # held as long as the process lives


def hold_lock(results: Path | None = None) -> None:
    """Make sure that one campaign at a time writes results. UserError if another one runs.

    The kernel drops the lock with its owner, however that ends, so a killed campaign never blocks the next one.
    """
    global _lock  # noqa: PLW0603 - the lock is the process's
    path = (results or paths.ROOT / "results") / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = open(path, "a")  # noqa: SIM115 - must stay open
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        raise UserError(f"another campaign is writing to {path.parent}; wait for it or end it") from None
    _lock = handle


def lift_job_rate_limit(workflow: Any) -> None:
    """Take snakemake's default limit of 100 jobs a second off a campaign on this machine.

    With a limit, snakemake 9.27 looks for ready jobs once a second *for every job that has ended*, until none is left:
    after some hundred jobs its main thread does nothing else, on a core that guests wait for. A limit that the user chose
    stays, and so does that of remote executors. Without the parts that this looks for nothing is changed.

    Args:
        workflow: snakemake's, once its scheduler exists (``onstart``).
    """
    scheduler: Any = getattr(workflow, "scheduler", None)
    limit = getattr(getattr(workflow, "scheduling_settings", None), "max_jobs_per_timespan", None)
    chosen = (getattr(limit, "max_jobs", None), getattr(limit, "timespan", None)) != (100, 1)
    if getattr(scheduler, "job_rate_limiter", None) is not None and not chosen and not workflow.remote_exec:
        scheduler.job_rate_limiter = None


def write_points(figure: Figure, results: Path) -> dict[str, Path]:
    """Write one file per point for the workflow, untouched if it is there already. Returns {label: file}."""
    written = {}
    for point in figure.points:
        path = results / "points" / figure.id / f"{point.label}.yaml"
        content = {"scenario": point.scenario.model_dump(exclude=GRID, exclude_unset=True), "values": point.values}
        text = yaml.safe_dump(content, sort_keys=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            files.write_text(path, text)
        written[point.label] = path
    return written


def read_point(path: Path) -> Point:
    """The point that write_points() wrote."""
    content = read_yaml(path)
    return Point(validate(content["scenario"], str(path)), content["values"])
