"""What a study consists of: a scenario with its sweep and cases, in a folder of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bbrlab.base import files, outputs
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import dump_yaml, parse_yaml, read_yaml
from bbrlab.results.figures import Figure, Run
from bbrlab.results.nested import differences
from bbrlab.results.run_folder import RunFolder
from bbrlab.run.conditions import CONDITIONS
from bbrlab.run.output import PAGE, SUMMARY
from bbrlab.scenario.load import load_points, points_of

# The files of a study's folder (docs/howto/ask.md); the pictures are called by the study's name.
SCENARIO, TABLE, MEANS, RUNS = "study.yaml", "runs.parquet", "means.csv", "runs"
PICTURES = ("png", "svg")
MADE = {
    TABLE: b'"share_of_capacity"',
    "runs.csv": b"figure,point,seed,",
    MEANS: b"point,group,",
    PAGE: outputs.PAGE,
}  # the tables and the page, with what is in each


@dataclass(frozen=True)
class Study:
    """A study and its folder."""

    figure: Figure
    folder: Path

    @property
    def name(self) -> str:
        """What its scenario is called."""
        return self.figure.scenario.name

    @cached_property
    def runs(self) -> list[Run]:
        """All its runs, those of each seed together: who interrupts it has some of every point."""
        points, trials = self.figure.points, self.figure.trials_of
        return [
            Run(self.figure.id, point, seed, self.folder / RUNS / point.label / f"seed-{seed}")
            for seed in range(1, self.figure.trials + 1)
            for point in points
            if seed <= trials(point)
        ]

    @property
    def pictures(self) -> list[Path]:
        """Their files."""
        return [self.folder / f"{self.name}.{kind}" for kind in PICTURES]

    @property
    def finished(self) -> list[Run]:
        """Those that are there."""
        return [run for run in self.runs if (run.folder / SUMMARY).exists()]


def plan_study(
    path: Path, folder: Path | None, overrides: Mapping[str, Any], seeds: int | None, sources: tuple[Path, ...] = ()
) -> Study:
    """The study of a scenario file. UserError for a scenario that is not valid; for a folder that is not of this study.

    Args:
        folder: of its results; default: one of the scenario's name in the working folder.
        overrides: {dotted path: value} in place of the file's (``--set``).
        seeds: of each point; default: the scenario's ``trials``. A point that draws nothing has two at most.
        sources: C files of algorithms of one's own that flows may have, beside those in kernels/cca/.
    """
    scenario, points = load_points(path, dict(overrides), sources=sources)
    if overrides:
        points = points_of(scenario, str(path))
    if seeds is not None:
        scenario = scenario.model_copy(update={"trials": seeds})
    study = Study(
        Figure(f"{scenario.paper}/{scenario.name}", scenario, points, scenario.trials), folder or Path(scenario.name)
    )
    _check_folder(study, path)
    return study


def _check_folder(study: Study, path: Path) -> None:
    """UserError for a folder that has something else in it than this study, or a file that is not of it in the place of a result."""
    folder = study.folder
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--out {folder}: is a file; give a folder")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not (folder / SCENARIO).is_file():
        raise UserError(
            f"--out {folder}: has files that are of no study (no {SCENARIO}); choose a folder that is empty, or not there yet"
        )
    content = read_yaml(folder / SCENARIO)
    name = content.get("name") if isinstance(content, dict) else None
    if name != study.name:
        raise UserError(
            f"--out {folder}: is of the study '{name}', and {path} is called '{study.name}'; choose another folder"
        )
    if not outputs.is_as_made(folder / SCENARIO):
        raise UserError(
            f"--out {folder}: its {SCENARIO} is not as bbrlab sweep wrote it, and would be replaced; choose another folder"
        )
    made = {folder / name: mark for name, mark in MADE.items()}
    for file, mark in {**made, **dict.fromkeys(study.pictures, outputs.PICTURE)}.items():
        outputs.check_file("--out", file, mark)


def write_scenario(study: Study) -> list[str]:
    """Write the scenario as it is run, with what was set: a file that `bbrlab sweep` takes again.

    Tables, pictures and page of another scenario of that name are removed; its runs stay, for who goes back to it.

    Returns:
        The fields in which the scenario of before differs, other than in the number of seeds.
    """
    file = study.folder / SCENARIO
    text = dump_yaml(study.figure.scenario.model_dump(exclude_unset=True), sort_keys=False)
    pairs = differences(read_yaml(file), parse_yaml(text)) if file.exists() else ()
    places = (re.sub(r"(\.\d+)+$", "", pair.place) for pair in pairs)  # without the place in a list of values
    differing = [place for place in dict.fromkeys(places) if place != "trials"]
    if differing:
        remove_made(study)
    files.write_if_changed(file, outputs.signed(text))
    return differing


def remove_made(study: Study) -> None:
    """Remove tables, pictures and page: what was made of runs that are no longer those of the study."""
    for name in [*MADE, *(path.name for path in study.pictures)]:
        (study.folder / name).unlink(missing_ok=True)


def is_kept(run: Run, kernel_key: str) -> bool:
    """Whether a run is there whole, of this kernel and under today's conditions, so that it need not be run again."""
    there = RunFolder(run.folder)
    try:
        return (
            there.file(SUMMARY) is not None
            and there.summary["kernel"]["key"] == kernel_key
            and there.manifest.get("conditions") == CONDITIONS[-1]
            and not there.problems()
        )
    except UserError:  # damaged, or another version's
        return False
