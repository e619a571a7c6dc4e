"""Adds curves of chosen runs to results that ship already: of samples in a campaign's folder, or of the runs made again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.kernel.own import recipe_name
from bbrlab.publish.expected_runs import ExpectedRun, ShippedResults
from bbrlab.results.curves import SEED, choices, curves_of_point, file_of
from bbrlab.results.digest import column_of
from bbrlab.results.figures import Figure, write_points
from bbrlab.results.shipped import RUNS
from bbrlab.run.output import SAMPLES
from bbrlab.run.processes import Job, run_job
from bbrlab_apps.shipping.shipped_folder import Say, exclusive_access, read_shipped, replace_shipped


@dataclass(frozen=True)
class AddedCurves:
    """What came of it."""

    figures: dict[str, int]  # that have curves now: their files' sizes in bytes
    refused: dict[str, str]  # {figure: why it has none}


def add_curves(
    folder: Path, scale: str, figures: Sequence[Figure], results: Path | None, say: Say = lambda text: None
) -> AddedCurves:
    """Add the curves of the figures of data/curves.yaml to what ships at a scale; other files stay as they are, byte for byte.

    UserError if nothing ships, or no figure that ships is in data/curves.yaml.

    Args:
        figures: of the scale; those that do not ship, or have no chosen runs, are left out.
        results: a campaign's folder, whose samples are taken where they are those of the runs that ship; others are run again.
    """
    with exclusive_access(folder, scale, say, "ship its figures first"):
        manifest, content = read_shipped(folder, scale)
        wanted = [f for f in figures if f.id in choices() and f.id in manifest.figures]
        if not wanted:
            raise UserError(f"{folder / scale}: no figure that ships there and was asked for is in data/curves.yaml")
        runs = content[RUNS].set_index(["figure", "point", "seed"])[column_of(SAMPLES)]
        shipped = ShippedResults(folder, scale, {f.id: f for f in wanted})
        refused: dict[str, str] = {}
        for figure in wanted:
            choice, parts = choices()[figure.id], []
            try:
                for point in choice.points_of(figure):
                    if (place := (figure.id, point.label, SEED)) not in runs:
                        continue
                    say(f"{figure.id}: {point.label}")
                    kept = (results or Path()) / "runs" / figure.id / point.label / f"seed-{SEED}" / SAMPLES
                    if results and kept.is_file() and files.sha256(kept) == runs[place]:
                        parts.append(curves_of_point(choice, point, kept))
                        continue
                    with _run_again(figure, shipped, place, str(runs[place])) as samples:
                        parts.append(curves_of_point(choice, point, samples))
            except UserError as error:
                refused[figure.id] = str(error)
                continue
            if parts:
                content[file_of(figure.id)] = pd.concat(parts, ignore_index=True)
            else:
                refused[figure.id] = "none of the points that data/curves.yaml names ships at this scale"
        kept_manifest = manifest.model_dump(mode="json", exclude={"files", "sha256"})
        replace_shipped(folder / scale, content, kept_manifest)
    added = [f.id for f in wanted if f.id not in refused]
    return AddedCurves({id: (folder / scale / file_of(id)).stat().st_size for id in added}, refused)


@contextmanager
def _run_again(figure: Figure, shipped: ShippedResults, place: tuple[str, str, int], sha256: str) -> Iterator[Path]:
    """The samples of a run that is made again. UserError if this version cannot make it, or its samples are others than those that ship."""
    if place not in shipped.keys:
        older = next((one for one in shipped.older if figure.id in one.figures), None)
        raise UserError(
            f"{place[1]}: {older.words if older else 'this version has no such run'}; give --results with its samples"
        )
    expected: ExpectedRun = shipped.expected(place)
    assert expected.kernel is not None
    with tempfile.TemporaryDirectory(prefix="bbrlab-curves-") as name:
        out = Path(name) / "run"
        point = write_points(figure, Path(name))[place[1]]
        ended = run_job(Job(point, SEED, out, recipe_name(expected.kernel[0])), [])
        if ended.why:
            raise UserError(f"{place[1]}: does not run here: {ended.why}")
        if files.sha256(out / SAMPLES) != sha256:
            raise UserError(f"{place[1]}: its samples are others than those that ship; bbrlab verify says what differs")
        yield out / SAMPLES
