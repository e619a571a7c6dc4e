"""A sample of a submission's runs made again, in guests, with limits, and compared byte for byte."""

from __future__ import annotations

import hashlib
import hmac
import os
import resource
import signal
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import TypedDict

import yaml

from bbrlab.base import files, python
from bbrlab.base.errors import UserError, why_it_failed
from bbrlab.base.signals import postponed
from bbrlab.claims.schema import rounded
from bbrlab.grading.cost import too_much
from bbrlab.grading.handed_runs import (
    EDITED_SAMPLES,
    EDITED_SUMMARY,
    SUMMARY,
    TABLE,
    RunFound,
    read_samples,
    summary_sha256,
    table_digest,
)
from bbrlab.grading.personal import Personal
from bbrlab.grading.rubric import Limits, Rubric
from bbrlab.grading.submission import shown
from bbrlab.kernel.built import Kernel
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab.workflow.estimate import estimate_s

SAME, DIFFERS, NOT_RUN = "the same", "differs", "not run"
MEMORY_HOLE_BYTES = 1 << 30  # by which the sparse file of a UML guest's memory is longer than the memory
FAILED_HERE, BEYOND = "could not be made again", "not made again, beyond the limits"
END_S = 10  # that a run may take to end when it is told to


class Rerun(TypedDict):
    """What came of a run made again.

    Attributes:
        run: index of the run in the submission.
        name: its folder.
        outcome: SAME, DIFFERS or NOT_RUN.
        kind: of what differs: EDITED_SAMPLES or EDITED_SUMMARY; of what was not run: FAILED_HERE if this machine could not finish it,
            BEYOND if the limits of the rubric forbid it; else "".
        told: in words.
    """

    run: int
    name: str
    outcome: str
    kind: str
    told: str


def sampled(
    rubric: Rubric, own: Personal, content_sha256: str, runs: list[RunFound], first: Collection[int]
) -> list[int]:
    """Which runs are made again: those of ``first``, then others in an order that the teacher's salt and the content decide.

    Nobody without the salt can tell which; the same submission has the same sample every time.

    Returns:
        Indices of ``runs``: ``rerun`` of the rubric, or all of ``first`` if they are more.
    """

    def rank(index: int) -> bytes:
        message = f"{rubric.name}\0{own.student}\0{content_sha256}\0{runs[index]['digest']}".encode()
        return hmac.digest(rubric.salt.encode(), message, hashlib.sha256)

    count = max(rubric.rerun, len(first)) if rubric.rerun else 0
    usable = [i for i, run in enumerate(runs) if not run["wrong"]]
    return sorted(usable, key=lambda i: (i not in first, rank(i)))[:count]


def run_again(rubric: Rubric, runs: list[RunFound], chosen: list[int], kernel: Kernel, scratch: Path) -> list[Rerun]:
    """Make runs again, one after the other, as far as the limits allow.

    Args:
        rubric: with the limits.
        runs: of the submission.
        chosen: indices (sampled()).
        kernel: in which.
        scratch: a folder of ours.
    """
    left_s = rubric.limits.rerun_s
    found: list[Rerun] = []
    for index in chosen:
        run = runs[index]
        point = Point(validate(run["scenario"], run["name"]), {})
        cost_s = estimate_s(point)
        reason = "; ".join(too_much(point, rubric.limits).values())
        if not reason and cost_s > left_s:
            reason = f"would need about {rounded(cost_s, 3)} s; of {rubric.limits.rerun_s:g} s for all of the sample {rounded(left_s, 3)} are left"
        if reason:
            found.append({"run": index, "name": run["name"], "outcome": NOT_RUN, "kind": BEYOND, "told": reason})
            continue
        left_s -= cost_s
        found.append(_again(rubric.limits, run, index, point, kernel, scratch / f"rerun-{index}"))
    return found


def _again(limits: Limits, run: RunFound, index: int, point: Point, kernel: Kernel, scratch: Path) -> Rerun:
    """One run made again and compared."""
    scratch.mkdir()
    file, out = scratch / "scenario.yaml", scratch / "out"
    file.write_text(yaml.safe_dump(run["scenario"]), encoding="utf-8")
    result: Rerun = {"run": index, "name": run["name"], "outcome": NOT_RUN, "kind": "", "told": ""}
    argv = [
        "run", str(file), "--seed", str(run["seed"]), "--out", str(out),
        "--kernel", kernel.name, "--watchdog-s", str(limits.end_s), "--quiet", "--die-with-parent",
    ]  # fmt: skip
    file_bytes = int((limits.memory_mb + limits.disk_mb) * 1e6) + MEMORY_HOLE_BYTES  # its memory is a file, too

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    child = None
    try:
        with postponed():
            child = python.start("bbrlab.cli.main", *argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 text=True, errors="replace", start_new_session=True, preexec_fn=limit)  # fmt: skip
        _, said = child.communicate(timeout=limits.end_s)
    except subprocess.TimeoutExpired:
        return result | {"kind": FAILED_HERE, "told": f"was ended after {limits.end_s:g} s"}
    finally:
        if child is not None and child.poll() is None:
            _end(child)
    if child.returncode:
        return result | {"kind": FAILED_HERE, "told": shown(why_it_failed(said, child.returncode), 300)}
    return result | _compared(run, point, out)  # type: ignore[return-value]


def _end(child: subprocess.Popen[str]) -> None:
    """End ``bbrlab run``: it ends its guest, all processes of it. Killed, it would leave those that a booting guest has stopped."""
    child.terminate()
    try:
        child.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _compared(run: RunFound, point: Point, out: Path) -> dict[str, str]:
    """How a run that was made again compares with the one that was handed in."""
    summary = files.read_json(out / SUMMARY)
    same_bytes = files.sha256(out / TABLE) == run["sha256"]
    same_values = same_bytes or table_digest(read_samples(out / TABLE, point)) == run["digest"]
    notes = f" (it {'; '.join(run['notes'])})" if run["notes"] else ""
    if not same_values:
        return {"outcome": DIFFERS, "kind": EDITED_SAMPLES, "told": f"made again, {TABLE} has other values{notes}"}
    if summary_sha256(summary) != run["summary_sha256"]:
        return {"outcome": DIFFERS, "kind": EDITED_SUMMARY, "told": f"made again, {SUMMARY} says something else{notes}"}
    if not same_bytes:
        return {
            "outcome": SAME,
            "kind": "",
            "told": "every value is the same; the file was written by another version of Arrow",
        }
    return {"outcome": SAME, "kind": "", "told": f"{TABLE} byte for byte, {SUMMARY} but for the real time"}


def ready(rubric: Rubric) -> Kernel:
    """The kernel that results must be of. UserError if it is not built here."""
    from bbrlab.run.fit import kernel_for

    try:
        return kernel_for(rubric.kernel, "uml")
    except UserError as error:
        raise UserError(f"grading needs the kernel of the assignment: {error}") from None
