"""Mutated submissions: whatever a student hands in, it is graded, with a page that can be shown, and never more than it is worth.

`python -m tests.fuzz.submissions 2000` tries so many; tests/fuzz/test_fuzz.py some. Every mutant is a submission that gets
full marks with one to three changes, from a fixed seed: a field of a file, the file's text or bytes, a column of the samples, the
place of files, or the archive that it is packed in.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tarfile
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from bbrlab_apps.grading import report, submitted_content
from bbrlab_apps.grading.grade import grade_submission
from bbrlab_apps.grading.load import load_rubric
from bbrlab_apps.grading.personal import personal
from bbrlab_apps.grading.rerun import ready
from tests.fuzz.scenarios import VALUES, change, garble
from tests.graded import STUDENT, make_submission, words, write_rubric

CRASHED = "the process that looked at it ended with"  # what an exception of ours looks like from outside (limited.py)
NUMBERS = (0, -1, 1, 2**31 - 1, -(2**31), 2**62, 1e308, -1e308, float("nan"), float("inf"), 1e-308, 0.1)


def change_tree(file: Path, rng: random.Random) -> str:
    """A field of a YAML or JSON file."""
    is_json = file.suffix in (".json", ".ipynb")
    content = json.loads(file.read_text()) if is_json else yaml.safe_load(file.read_text())
    change(content, rng, VALUES, sorted(content))
    try:
        text = json.dumps(content) if is_json else yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    except (TypeError, ValueError):
        text = repr(content)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    return "field"


def change_text(file: Path, rng: random.Random) -> str:
    """Its text."""
    file.write_bytes(garble(file.read_text(errors="replace") or "x", rng).encode("utf-8", "surrogatepass"))
    return "text"


def change_bytes(file: Path, rng: random.Random) -> str:
    """Its bytes: some are others, or it is cut off, or doubled."""
    data = bytearray(file.read_bytes()) or bytearray(b"x")
    match rng.choice(("flip", "flip", "cut", "double", "insert")):
        case "flip":
            for _ in range(rng.choice((1, 1, 4, 40))):
                data[rng.choice((rng.randrange(len(data)), -1 - rng.randrange(min(len(data), 4000))))] = rng.randrange(
                    256
                )
        case "cut":
            del data[rng.randrange(len(data)) :]
        case "double":
            data.extend(bytes(data))
        case "insert":
            at = rng.randrange(len(data))
            data[at:at] = rng.randbytes(rng.choice((1, 8, 4096)))
    file.write_bytes(data)
    return "bytes"


def change_samples(file: Path, rng: random.Random) -> str:
    """A column of the samples, with the manifest's hash made to fit, as somebody who knows the format would do."""
    table = pq.read_table(file)
    place = rng.randrange(table.num_columns)
    name, values = table.column_names[place], table.column(place).to_numpy().copy()
    match rng.choice(("value", "value", "all", "type", "drop", "order", "rows", "none", "twice")):
        case "value":
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values[rng.randrange(len(values))] = np.array(rng.choice(NUMBERS)).astype(values.dtype)
            table = table.set_column(place, name, [values])
        case "all":
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                table = table.set_column(
                    place, name, [(values * rng.choice((-1.0, 0.0, 0.9, 1.1, 1e9))).astype(values.dtype)]
                )
        case "type":
            kind = rng.choice((pa.int8(), pa.float16(), pa.string(), pa.bool_(), pa.float64(), pa.uint64()))
            table = table.set_column(place, name, [pa.nulls(len(values), kind)])
        case "drop":
            table = table.drop_columns([name])
        case "order":
            table = table.take(pa.array(rng.sample(range(table.num_rows), table.num_rows)))
        case "rows":
            table = table.slice(rng.randrange(table.num_rows), rng.choice((0, 1, 10, 10**6)))
        case "none":
            held = [None if rng.random() < 0.1 else v for v in table.column(place).to_pylist()]
            table = table.set_column(place, name, [pa.array(held, table.column(place).type)])
        case "twice":
            table = pa.concat_tables([table, table])
    pq.write_table(table, file, compression="zstd")
    manifest = file.with_name("manifest.json")
    if manifest.exists() and rng.random() < 0.8:
        from bbrlab.base import files

        try:
            content = json.loads(manifest.read_text())
            content["outputs_sha256"] = {file.name: files.sha256(file)}
            manifest.write_text(json.dumps(content))
        except (ValueError, TypeError, AttributeError):
            pass
    return "samples"


def change_place(folder: Path, rng: random.Random) -> str:
    """Where files are, and what kind of thing they are."""
    paths = sorted(p for p in folder.rglob("*"))
    path = rng.choice(paths)
    other = rng.choice(paths)
    match rng.choice(("remove", "rename", "swap", "double", "link", "empty", "folder", "pipe")):
        case "remove":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        case "rename":
            path.rename(
                path.with_name(
                    rng.choice(
                        ("x", "é", " ", "summary.json", "seed-0", "..." + path.name, path.name.upper(), "a" * 200)
                    )
                )
            )
        case "swap" if path.is_file() and other.is_file():
            shutil.copy(path, other)
        case "double":
            target = path.with_name(f"{path.name} (copy)")
            shutil.copytree(path, target) if path.is_dir() else shutil.copy(path, target)
        case "link" if path.is_file():
            path.unlink()
            path.symlink_to(rng.choice(("/etc/passwd", ".", "nowhere", str(other))))
        case "folder" if path.is_file():
            path.unlink()
            path.mkdir()
        case "pipe" if path.is_file():
            path.unlink()
            os.mkfifo(path)
        case _:
            if path.is_file():
                path.write_bytes(b"")
    return "place"


def packed(folder: Path, rng: random.Random) -> Path:
    """An archive of a folder, now and then with other bytes."""
    suffix = rng.choice((".zip", ".tar", ".tar.gz", ".tar.xz"))
    file = folder.parent / f"{STUDENT}{suffix}"
    plain = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()]
    if suffix == ".zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in plain:
                archive.write(path, path.relative_to(folder))
    else:
        with tarfile.open(file, f"w:{suffix.removeprefix('.tar').removeprefix('.')}") as archive:
            archive.add(folder, STUDENT, filter=None)
    if rng.random() < 0.7:
        change_bytes(file, rng)
    return file


def mutate(folder: Path, rng: random.Random) -> tuple[Path, set[str]]:
    """Change a submission. Returns what is handed in, and the kinds of changes."""
    kinds = set()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        plain = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()]
        if not plain:
            break
        file = rng.choice(plain)
        how = rng.random()
        try:
            if how < 0.15:
                kinds.add(change_place(folder, rng))
            elif file.suffix == ".parquet":
                kinds.add(change_samples(file, rng) if how < 0.7 else change_bytes(file, rng))
            elif how < 0.65:
                kinds.add(change_tree(file, rng))
            else:
                kinds.add(change_text(file, rng) if how < 0.85 else change_bytes(file, rng))
        except (
            OSError,
            ValueError,
            TypeError,
            OverflowError,
            AttributeError,
            KeyError,
            RecursionError,
            yaml.YAMLError,
            pa.ArrowException,
        ):
            kinds.add("change of what is broken already")  # a second change finds what the first one left
    if rng.random() < 0.15:
        return packed(folder, rng), kinds | {"archive"}
    return folder, kinds


def look(path: Path, rubric_file: Path) -> None:
    """Look at a submission in this process, where an exception shows."""
    rubric = load_rubric(rubric_file)
    with tempfile.TemporaryDirectory() as scratch:
        submitted_content.read_content(path, rubric, personal(rubric, STUDENT), ready(rubric), Path(scratch))


def fuzz(good: Path, rubric_file: Path, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Grade ``count`` mutants of a good submission. Returns how many got full marks, fewer, or crashed, and the crashes."""
    found: Counter[str] = Counter()
    crashes = []
    rng = random.Random(f"submissions:{seed}")
    for number in range(count):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copytree(good, folder / "in" / STUDENT)
            path, kinds = mutate(folder / "in" / STUDENT, rng)
            try:
                grade = grade_submission(path, rubric_file, STUDENT, folder / "out")
                text = words(grade)
                if CRASHED in text:
                    look(path, rubric_file)
                assert "Traceback" not in text, text
                assert str(folder) not in text, "names a place of this machine"
                assert 0 <= grade["score"] <= grade["of"], grade["score"]
                assert (folder / "out" / report.PAGE).read_text(encoding="utf-8") == report.page(grade)
                full = grade["score"] == grade["of"]
                found["full marks" if full else "fewer"] += 1
                found[f"lost {CRASHED}" if CRASHED in text else "told"] += 1
            except Exception:
                found["crashed"] += 1
                crashes.append(f"mutant {number} ({', '.join(sorted(kinds))}):\n{traceback.format_exc(limit=-8)}")
    return found, crashes


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rubric_file = write_rubric(Path(name))
        found, crashes = fuzz(
            make_submission(Path(name) / "good" / STUDENT, rubric_file), rubric_file, options.count, options.seed
        )
    for text in crashes[:20]:
        print(text[-3000:])
    print(f"{options.count} mutants: {dict(found)}")
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
