"""docs/reference/artifact_statements.md: every statement with its command and time; docs/howto/artifact.md: what its one paper takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bbrlab.base import paths
from bbrlab.claims.load import load_statements
from bbrlab.claims.schema import Statement
from bbrlab.results.config import CORES, FULL, command_for
from bbrlab.results.figures import Figure, figures_at, runs_of
from bbrlab.results.run_estimate import estimate_s
from bbrlab.results.tables import read_figure
from docs._make.marks import replace_between, table

PAGE = paths.ROOT / "docs/reference/artifact_statements.md"
HOWTO = paths.ROOT / "docs/howto/artifact.md"
ONE_PAPER = "tang"  # which a reviewer runs whole
ROW = re.compile(r"^(\| one paper, all points and trials \| .* \|) \d+ \|$", re.MULTILINE)
HEAD = """# Every statement, its command and its time
<!-- Made by make format; do not edit. -->
What the papers say (`data/PAPER/claims.yaml`), by the command that runs all of it. How to use it: [artifact.md](../howto/artifact.md).

- **Command**: after `source .venv/bin/activate`, in the package's folder. It ends with the verdicts on the terminal and in `results/full/PAPER/FIGURE.claims.txt`.
  Claims that need several figures together are judged when one command names all of these, or with the whole paper: `snakemake --cores 2 --config scale=full -- PAPER`.
- **full**: estimated time on 2 cores ([benchmarks.md](benchmarks.md)), if none of the runs is there yet; without the models' predictions and further seeds that claims may ask for. `snakemake -n` with the same words says it for your machine.
- **quick**: the same figures at scale `quick`, which runs a part of them and may leave a statement undecided; "-": not a part of it.
"""  # fmt: skip


def minutes_of(figure: Figure) -> float:
    """Expected minutes of a figure's runs on CORES cores, the seeds that each point begins with."""
    return sum(estimate_s(run.point) for run in runs_of(figure, results=Path("/nonexistent"))) / 60 / CORES


def span(minutes: float) -> str:
    """Minutes for a reader: ``40 s``, ``12 min``, ``3.4 h``."""
    if minutes < 1:
        return f"{max(1, round(minutes * 6)) * 10} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def figures_of(statement: Statement) -> list[str]:
    """The figures that a statement's claims are about, in order."""
    return sorted({figure for claim in statement.claims for figure in claim.figures})


def page() -> str:
    """The page."""
    at = {scale: {f.id: f for f in figures_at(scale, [])} for scale in (FULL, "quick")}
    minutes = {scale: {id: minutes_of(f) for id, f in figures.items()} for scale, figures in at.items()}
    papers: dict[str, list[Statement]] = {}
    for statement in load_statements(known_good=True):
        papers.setdefault(statement.paper, []).append(statement)
    rows = []
    for paper, statements in papers.items():
        mine = [id for id in at[FULL] if id.split("/")[0] == paper]
        runs = sum(len(runs_of(at[FULL][id])) for id in mine)
        rows.append((f"[{paper}](#{paper})", len(statements), runs, *_sums(minutes, mine)))
    runs_of_all = sum(len(runs_of(figure)) for figure in at[FULL].values())
    rows.append(("all", sum(map(len, papers.values())), runs_of_all, *_sums(minutes, list(at[FULL]))))
    lines = [HEAD, *table(("paper", "statements", "runs, without further seeds", "full", "quick"), rows)]
    for paper, statements in papers.items():
        by_figures: dict[tuple[str, ...], list[Statement]] = {}
        for statement in statements:
            by_figures.setdefault(tuple(figures_of(statement)), []).append(statement)
        rows = []
        for figures, some in by_figures.items():
            said = "".join(f"<br>**{s.id}** {s.says}" for s in some).replace("|", "\\|")
            rows.append((f"`{command_for(' '.join(figures), FULL)}`{said}", *_sums(minutes, figures)))
        lines += ["", f"## {paper}", *table(("command, statements", "full", "quick"), rows)]
    return "\n".join(lines) + "\n"


def _sums(minutes: dict[str, dict[str, float]], figures: Sequence[str]) -> list[str]:
    """What figures take at each scale."""
    there = [[of_scale[id] for id in figures if id in of_scale] for of_scale in minutes.values()]
    return [span(sum(times)) if times else "-" for times in there]


def howto(text: str) -> str:
    """artifact.md with the runs and minutes of ONE_PAPER at scale full: the seeds that it ships with. ValueError if the page has no place for them."""
    number, seconds = 0, 0.0
    for figure in figures_at(FULL, []):
        if figure.id.split("/")[0] == ONE_PAPER:
            points = {point.label: point for point in figure.points}
            runs = read_figure(paths.ROOT / "shipped" / FULL / f"{figure.id}.parquet").drop_duplicates(
                ["point", "seed"]
            )
            number += len(runs)
            seconds += sum(estimate_s(points[label]) for label in runs["point"])
    minutes = round(seconds / 60 / CORES)
    statements = sum(statement.paper == ONE_PAPER for statement in load_statements(known_good=True))
    if len(ROW.findall(text)) != 1:
        raise ValueError(f"{HOWTO}: needs one row that begins '| one paper, all points and trials |'")
    words = f"Tang's: {statements} statements, {number} runs with further seeds, some {minutes} minutes."
    return replace_between(ROW.sub(rf"\1 {minutes} |", text), "one paper", words)


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    return {PAGE: page(), HOWTO: howto(HOWTO.read_text(encoding="utf-8"))}
