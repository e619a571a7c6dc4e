"""A small assignment and a submission to it, for the tests of grading."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from bbrlab.base import files
from bbrlab.run.run import run_point
from bbrlab.scenario.point import Point
from bbrlab_apps.grading.grade import grade_submission
from bbrlab_apps.grading.grades import Grade
from bbrlab_apps.grading.load import load_rubric
from bbrlab_apps.grading.personal import personal

STUDENT = "ada"
RUBRIC: dict[str, Any] = {
    "name": "tiny",
    "title": "A tiny assignment",
    "salt": "a secret of the tests",
    "parameters": {"rate_mbit": {"low": 8, "high": 12, "step": 0.5}, "rtt_ms": {"low": 20, "high": 40, "step": 1}},
    "seeds": 2,
    "scenario": {
        "name": "tiny", "network": {"rate_mbit": "{rate_mbit}", "rtt_ms": "{rtt_ms}", "buffer": {"bdp": 2}},
        "flows": [{"cca": "bbr1"}, {"cca": "cubic"}], "duration_s": 4, "window_s": [1, 4],
    },
    "points": {"complete": 10, "scenario": 20, "runs": 20},
    "rerun": 0,
    "claims": [
        {"id": "some", "says": "BBRv1 has some part of all goodput.", "metric": "share_of_goodput", "expect": {"range": [-9, 9]},
         "because": "a share is from 0 to 1", "points": 10},
        {"id": "share", "says": "BBRv1's share of all goodput.", "metric": "share_of_goodput", "expect": {"at_least": 2},
         "because": "nothing has so much", "verdict": "not reproduced"},
    ],
    "questions": [
        {"id": "bdp_bytes", "asks": "What is the bandwidth-delay product?", "points": 10,
         "value": "{rate_mbit} * 1000 / 8 * {rtt_ms}", "within_percent": 1},
        {"id": "share", "asks": "What is BBR's share of all goodput?", "points": 10, "number_of": "share", "within": 0.001},
        {"id": "holds", "asks": "What is the verdict on the share?", "points": 10, "verdict_of": "share"},
        {"id": "colour", "asks": "Which colour has a red pen?", "points": 10, "choice": "red", "choices": ["red", "blue"]},
    ],
    "limits": {"submission_mb": 20, "files": 300, "examine_s": 20, "memory_mb": 1000},
}  # fmt: skip


def write_rubric(folder: Path, **changes: Any) -> Path:
    """The rubric with some of its keys changed."""
    file = folder / "rubric.yaml"
    file.write_text(yaml.safe_dump(RUBRIC | changes, sort_keys=False))
    return file


def make_submission(folder: Path, rubric_file: Path, student: str = STUDENT) -> Path:
    """A submission that gets full marks, with its guests run."""
    own = personal(load_rubric(rubric_file), student)
    shares = []
    for point in own.assignment.points:
        for seed in own.seeds:
            out = folder / "results" / f"seed-{seed}"
            summary = run_point(Point(point.scenario, {}), seed, out)
            shares.append(summary["groups"][0]["share_of_goodput"])
    content = own.assignment.scenario.model_dump(exclude_unset=True)
    (folder / "scenario.yaml").write_text(yaml.safe_dump(content))
    rate, rtt = own.parameters["rate_mbit"], own.parameters["rtt_ms"]
    answers = {
        "bdp_bytes": float(rate) * 125 * float(rtt), "share": sum(shares) / len(shares), "holds": "not reproduced", "colour": "red",
    }  # fmt: skip
    (folder / "answers.yaml").write_text(yaml.safe_dump({"student": student, "answers": answers}))
    (folder / "notebook.ipynb").write_text(
        json.dumps({"cells": [{}], "nbformat": 4, "nbformat_minor": 5, "metadata": {}})
    )
    return folder


def copied(good: Path, target: Path) -> Path:
    """A copy of a submission, to break."""
    shutil.copytree(good, target)
    return target


def first_run(submission: Path) -> Path:
    return sorted((submission / "results").iterdir())[0]


def edit_json(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def edit_samples(run: Path, *, column: str = "bytes_acked", factor: float = 0.9) -> None:
    """Other values of the first flow, by default fewer acknowledged bytes, with the manifest's hash made to fit."""
    table = pq.read_table(run / "samples.parquet")
    values = table[column].to_numpy().copy()
    of_first_flow = table["flow"].to_numpy() == 0
    values[of_first_flow] = (values[of_first_flow] * factor).astype(values.dtype)
    write_samples(run, table.set_column(table.column_names.index(column), column, [values]))


def write_samples(run: Path, table: pa.Table) -> None:
    """Other samples, with the manifest's hash made to fit."""
    pq.write_table(table, run / "samples.parquet", compression="zstd")
    edit_json(run / "manifest.json", outputs_sha256={"samples.parquet": files.sha256(run / "samples.parquet")})


def graded(submission: Path, rubric_file: Path, out: Path, student: str = STUDENT) -> Grade:
    return grade_submission(submission, rubric_file, student, out)


def words(grade: Grade) -> str:
    """Everything that a grade says."""
    return json.dumps(grade, ensure_ascii=False)


def kinds(grade: Grade) -> set[str]:
    return {kind for kind, _ in grade["flags"]}


def score_of(grade: Grade, id: str) -> float:
    return next(i["score"] for i in grade["items"] if i["id"] == id)


def careful_summary(run: Path) -> None:
    """A summary that the samples say, too."""
    from bbrlab.experiment import iperf3_library
    from bbrlab.experiment.plan import make_plan
    from bbrlab.kernel.built import get_kernel
    from bbrlab.scenario.messages import validate
    from bbrlab_apps.grading.recount import recounted
    from bbrlab_apps.grading.submitted_samples import read_samples

    manifest, kernel = files.read_json(run / "manifest.json"), get_kernel()
    point = Point(validate(manifest["scenario"], "manifest"), {})
    plan = make_plan(point, manifest["seed"], kernel.ccas, preload=iperf3_library.LIBRARY, modules=kernel.modules)
    edit_json(run / "summary.json", **recounted(point, plan, read_samples(run / "samples.parquet", point)))
