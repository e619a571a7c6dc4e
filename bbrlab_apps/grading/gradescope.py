"""A Gradescope autograder: writing the archive to upload, and grading there.

Format: gradescope-autograders.readthedocs.io (Autograder Specifications, Submission Metadata). The archive has setup.sh, which runs once
as root in an Ubuntu image, and run_autograder, which runs for each submission in /autograder. Nothing is run again there: its Linux is not
the one that the lab's guests are made of, so their bytes would be others.
"""

from __future__ import annotations

import io
import json
import subprocess
import traceback
import zipfile
from pathlib import Path
from typing import Any

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.git import git
from bbrlab.base.words import in_short
from bbrlab.base.yaml_files import dump_yaml, read_yaml
from bbrlab.experiment import iperf3_library
from bbrlab.kernel.built import kernel_folder
from bbrlab.kernel.record import to_record
from bbrlab_apps.grading.grade import grade_submission
from bbrlab_apps.grading.load import load_rubric, tried
from bbrlab_apps.grading.marks import ByPeople, late_days
from bbrlab_apps.grading.people import Roster, read_roster
from bbrlab_apps.grading.personal import filled
from bbrlab_apps.grading.report import GRADESCOPE
from bbrlab_apps.grading.rerun import ready
from bbrlab_apps.grading.rubric import Rubric, instant_of

RUBRIC, ROSTER, CHECKOUT = "rubric.yaml", "roster.csv", "bbrlab.tar.gz"
METADATA = "submission_metadata.json"
# Of the checkout; courses have right answers.
WITHOUT = ("shipped", "notebooks", "docs", "courses", "tests", "ns3", "binder", "data")
MADE = (1980, 1, 1, 0, 0, 0)  # the same archive of the same files
SETUP = """#!/usr/bin/env bash
# Runs once, as root, when Gradescope builds the autograder's image. Needs the network for Python's packages, which are fixed by hash.
set -euo pipefail
root="${AUTOGRADER:-/autograder}"
cd "$root/source"
mkdir -p bbrlab
tar -xzf bbrlab.tar.gz -C bbrlab
python=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  apt-get install -y python3.11 python3.11-venv
  python=python3.11
elif ! python3 -c 'import ensurepip'; then
  apt-get install -y python3-venv
fi
"$python" -m venv bbrlab/.venv
bbrlab/.venv/bin/pip install --no-cache-dir --require-hashes -r bbrlab/envs/requirements.lock
bbrlab/.venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation -e bbrlab
"""
RUN = """#!/usr/bin/env bash
# Runs for each submission. The path has no compiler and no packages: the kernel is the one that was recorded, whatever is installed here.
root="${AUTOGRADER:-/autograder}"
bin="$root/source/bbrlab/.venv/bin"
cd "$root" || exit 1
export BBRLAB_BUILD="$root/source/build"
PATH="$bin:$root/source/tools" exec "$bin/bbrlab" course autograde "$root"
"""


def rubric_for_gradescope(file: Path) -> dict[str, Any]:
    """The rubric for Gradescope: without repeated runs and their points."""
    content: dict[str, Any] = read_yaml(file)
    content["rerun"] = 0
    content["points"] = {**content["points"], "rerun": 0}
    return content


def write_autograder(rubric_file: Path, roster_file: Path | None, out: Path) -> list[str]:
    """Write the archive. Returns notes for the teacher. UserError for what is wrong with the rubric, the roster or this machine.

    Args:
        roster_file: a CSV file with the students' ids and e-mails; None: their e-mails are their ids.
    """
    rubric, notes = load_rubric(rubric_file), list[str]()
    kernel = ready(rubric)
    parts: dict[str, tuple[bytes, int]] = {
        "setup.sh": (SETUP.encode(), 0o755),
        "run_autograder": (RUN.encode(), 0o755),
        "tools/dpkg-query": (b"#!/bin/sh\nexit 1\n", 0o755),
        RUBRIC: (dump_yaml(rubric_for_gradescope(rubric_file)).encode(), 0o644),
        CHECKOUT: (_checkout(notes), 0o644),
        "build/built_with.json": (json.dumps(to_record()).encode(), 0o644),
    }
    for name in _files_of(rubric):
        file = rubric_file.parent / name
        if not file.resolve().is_relative_to(rubric_file.parent.resolve()):
            raise UserError(
                f"{rubric_file}: network.changes {name}: the archive has what lies beside the rubric; put it there"
            )
        parts[name] = (file.read_bytes(), 0o644)
    if roster_file is not None:
        roster = read_roster(roster_file)
        if missing := set(roster.ids) - set(roster.by_email.values()):
            raise UserError(
                f"{roster_file}: no e-mail, by which Gradescope knows students: {in_short(sorted(missing))}"
            )
        parts[ROSTER] = (roster_file.read_bytes(), 0o644)
    else:
        notes.append("without --roster an e-mail is an id: draw with those (bbrlab assign)")
    for folder, name in ((kernel_folder(kernel.key), "kernels"), (iperf3_library.library_folder(), "guest")):
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            parts[f"build/{name}/{folder.name}/{file.relative_to(folder).as_posix()}"] = (
                file.read_bytes(),
                file.stat().st_mode & 0o777,
            )
    if rubric.rerun:
        notes.append(
            f"no run is made again there: {rubric.points.rerun:g} fewer points; grade the last hand-ins here with the whole rubric"
        )
    if people := [q.id for q in rubric.questions if q.person is not None]:
        notes.append(f"for a person to grade, as questions of Gradescope's own: {', '.join(people)}")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (content, mode) in sorted(parts.items()):
            info = zipfile.ZipInfo(name, MADE)
            info.external_attr, info.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    with files.aside(out) as temporary:
        temporary.write_bytes(buffer.getvalue())
    return notes


def _files_of(rubric: Rubric) -> list[str]:
    """The files of changes that its scenario names, whatever is drawn."""
    changes = rubric.scenario["network"].get("changes")
    return (
        sorted({filled(changes, drawn, ()) for drawn in tried(rubric.parameters)}) if isinstance(changes, str) else []
    )


def _checkout(notes: list[str]) -> bytes:
    """The commit's files, without what grading does not need."""
    if git("rev-parse", "HEAD") is None:
        raise UserError(
            "the autograder has this checkout in it, and this is none of Git's: run it where bbrlab was cloned"
        )
    if git("status", "--porcelain", "--untracked-files=no"):
        notes.append("files differ from the commit; the archive has the commit's")
    apart = [f":!{name}" for name in WITHOUT]
    argv = ["git", "-C", str(paths.ROOT), "archive", "--format=tar.gz", "HEAD", "--", ".", *apart]
    done = subprocess.run(argv, capture_output=True, check=False)
    if done.returncode:
        raise UserError(f"git archive failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def autograde(root: Path) -> None:
    """Grade ROOT/submission and write ROOT/results/results.json, also if grading fails."""
    results = root / "results" / "results.json"
    try:
        source = root / "source"
        rubric = load_rubric(source / RUBRIC)
        roster = read_roster(source / ROSTER) if (source / ROSTER).exists() else None
        student, people, notes = _student_of(files.read_json(root / METADATA), rubric, roster)
        grade_submission(root / "submission", source / RUBRIC, student, root / "results" / "grade", by_people=people)
        content = files.read_json(root / "results" / "grade" / GRADESCOPE)
        content["output"] = "\n".join([content["output"], *notes])
    except Exception as error:  # without results.json Gradescope shows a student nothing but that the autograder failed
        why = str(error) if isinstance(error, UserError) else f"{type(error).__name__} (a fault of the autograder's)"
        if not isinstance(error, UserError):
            traceback.print_exc()  # on the page of the autograder's output, which teachers see
        content = {
            "score": 0,
            "output": f"This could not be graded: {why}. Ask your teacher.",
            "output_format": "text",
            "visibility": "visible",
        }
    files.write_json(results, content)


def _student_of(metadata: dict[str, Any], rubric: Rubric, roster: Roster | None) -> tuple[str, ByPeople, list[str]]:
    """The student's id, how late it is, and notes."""
    users = {user["email"].strip().lower(): user for user in metadata["users"]}
    ids = {(roster.by_email[email] if roster else email): user for email, user in users.items() if not roster or email in roster.by_email}  # fmt: skip
    if not ids:
        raise UserError(f"{', '.join(users) or 'nobody'} is not in the roster of this assignment")
    id, user = next(iter(ids.items()))
    notes = [f"Graded as {id}'s."] if len(ids) > 1 else []
    days = 0
    # Of the student, where Gradescope says it, with an extension; else of all.
    due = rubric.late.deadline or (user.get("assignment") or metadata["assignment"])["due_date"]
    if due and (rubric.late.percent_per_day or rubric.late.last_day is not None):
        days = late_days(instant_of(due), instant_of(metadata["created_at"]))
    return id, {"late_days": days, "marks": {}}, notes
