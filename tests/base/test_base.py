"""What everything stands on: paths, files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import Field

from bbrlab.base import paths, tables
from bbrlab.base.errors import DamagedFile, UserError
from bbrlab.base.problems import SHOWN_MAX
from bbrlab.base.strict import Strict, read_model
from bbrlab.base.tables import read_table
from bbrlab.base.yaml_files import read_texts, read_yaml
from bbrlab.campaign.lock import hold_lock
from bbrlab.campaign.stages import PACKAGES
from bbrlab.results.figures import figures_at, runs_of
from tests.conftest import campaign_runs, changed, state_of


class Part(Strict):
    """A model."""

    size: int


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- {size: 1}\n- {size: big}\n", "1.size: must be a whole number (found 'big')"),
        ("- {}\n", "0.size: is missing"),
        ("- {size: 1, color: 2}\n", "0.color: unknown key (there are size)"),
        ("- {sizee: 1}\n", "0.sizee: unknown key; did you mean 'size'?"),
        ("size: 1\n", "content: must be a list (found the keys size)"),
        ("- {size: 1.5}\n", "0.size: must be a whole number (found 1.5)"),
        ("- {size: 1, color: secret, depth: 2}\n", "0.color: unknown key (there are size)"),
        ("", "is empty"),
        ("# nothing yet\n", "is empty"),
        (f"- {{size: {'x' * 500}}}\n", f"0.size: must be a whole number (found '{'x' * (SHOWN_MAX - 1)})"),
    ],
)
def test_a_wrong_field_of_a_file_is_named_with_its_value(tmp_path, text, problem):
    path = tmp_path / "parts.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_model(path, list[Part])
    assert str(caught.value) == f"{path}: {problem}"


def test_a_file_of_another_kind_is_told_by_its_keys_and_keeps_its_values_to_itself(tmp_path):
    path = tmp_path / "part.yaml"
    path.write_text("name: mine\nsalt: secret\n")
    with pytest.raises(UserError) as caught:
        read_model(path, Part, "give a part")
    assert str(caught.value) == f"{path}: is another kind of file: it has name, salt, and not size; give a part"
    path.write_text("sizee: 1\n")
    with pytest.raises(UserError, match="sizee: unknown key; did you mean 'size'"):
        read_model(path, Part)


class Named(Strict):
    """A model with names."""

    name: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$")] = "a"
    small: Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,39}$")] = "a"
    other: Annotated[str, Field(pattern="^(a|b)$")] = "a"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: my study", "name: must be of letters, digits, _ . - only, with a letter or digit first; no spaces (found 'my study')"),
        ("small: Big", "small: must be of small letters, digits, _ only, with a small letter first, at most 40 in all; no spaces (found 'Big')"),
        ("other: c", "other: string should match pattern '^(a|b)$' (found 'c')"),
        ("name: yes", "name: must be a text; write it in quotes (YAML reads yes, on and true as true) (found True)"),
        ("name: 12", "name: must be a text; write it in quotes (found 12)"),
    ],
)  # fmt: skip
def test_what_a_text_must_be_is_said_in_words(tmp_path, text, problem):
    path = tmp_path / "named.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_model(path, Named)
    assert str(caught.value) == f"{path}: {problem}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cases:\n  on: {}\n", "2:3: not valid YAML: the key on: YAML reads on as true; write it in quotes: 'on'"),
        ("cases: {NO: 1}\n", "1:9: not valid YAML: the key NO: YAML reads NO as false; write it in quotes: 'NO'"),
        ("1: a\ntrue: b\n", "1:1: not valid YAML: the key 1: YAML reads 1 as a number; write it in quotes: '1'"),
        ("null: a\n", "1:1: not valid YAML: the key null: YAML reads null as nothing; write it in quotes: 'null'"),
        ("?\n: a\n", "1:2: not valid YAML: a key is missing before the colon"),
        ("{rtt_ms: 20,5}\n", "1:13: not valid YAML: 20,5: decimals have a point, as 20.5"),
        ("a:\n\t- b\n", "2:1: not valid YAML: a tab; indent with spaces"),
        ("a: @b\n", "1:4: not valid YAML: found character that cannot start any token; a text that begins with a sign stands in quotes"),
        ("a: b: c\n", "1:5: not valid YAML: mapping values are not allowed in this context; a text with a colon stands in quotes, and keys of one part begin in one column"),
    ],
)  # fmt: skip
def test_what_is_no_plain_yaml_is_told_with_what_to_write(tmp_path, text, said):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_yaml(path)
    assert str(caught.value) == f"{path}:{said}"


def test_keys_in_quotes_and_as_they_are_typed_are_texts(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("'on': {'1': 2, \"null\": 3}\n")
    assert read_yaml(path) == {"on": {"1": 2, "null": 3}}
    path.write_text("on: {1: 2, null: 3}\n")
    assert read_texts(path) == {"on": {"1": "2", "null": "3"}}


@pytest.mark.parametrize(("given", "meant"), [("", "results"), ("other", "other"), ("/elsewhere", "/elsewhere")])
def test_results_move_with_the_environment(monkeypatch, tmp_path, given, meant):
    monkeypatch.setenv("BBRLAB_RESULTS", given)
    monkeypatch.chdir(tmp_path)  # a notebook runs in its own folder
    assert paths.results_folder() == paths.ROOT / meant
    assert paths.results_folder().is_absolute()


def test_runs_and_lock_are_where_the_results_are(monkeypatch, tmp_path):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "mine"))
    (figure,) = figures_at("smoke", ["tang/fig2"])
    assert all(run.folder.is_relative_to(tmp_path / "mine") for run in runs_of(figure))
    hold_lock()
    assert (tmp_path / "mine" / ".lock").exists()


def test_nothing_but_paths_builds_the_results_folder():
    """Every place asks paths.results_folder(), or BBRLAB_RESULTS would move only a part."""
    code = [
        *(p for name in PACKAGES for p in (paths.ROOT / name).rglob("*.py")),
        *(paths.ROOT / "notebooks").glob("*.ipynb"),
    ]
    # In grading/ it is the folder of that name in a submission, in archive/ that in an archive.
    apart = ("grading", "archive")
    literal = [str(p) for p in code if p.name != "paths.py" and p.parent.name not in apart and _literal(p)]
    assert literal == []


def _literal(path: Path) -> bool:
    text = path.read_text(encoding="utf-8").replace('\\"', '"')
    return bool(re.search(r'(?<!=)[=/(] ?f?"results["/]', text))


def test_a_session_has_results_of_its_own():
    mine = Path(os.environ["BBRLAB_RESULTS"])
    assert mine.is_dir()
    assert not mine.is_relative_to(paths.ROOT)
    code = "from bbrlab.base import paths; print(paths.results_folder())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=paths.ROOT)
    assert done.stdout.strip() == str(mine), "what the tests start writes there, too"


@pytest.mark.parametrize("meddle", ["results.write_text('x')", "pass"])
def test_a_session_that_touches_the_users_results_fails(tmp_path, meddle):
    """The guard in conftest.py, tried with another folder in the place of the checkout's."""
    (tmp_path / "results").mkdir()
    (tmp_path / "conftest.py").write_text(
        "from pathlib import Path\nimport tests.conftest as real\nfrom tests.conftest import *\n"
        f"real.USERS_RESULTS = Path({str(tmp_path / 'results')!r})\n"
    )
    (tmp_path / "test_it.py").write_text(
        f"from pathlib import Path\ndef test_it():\n    results = Path({str(tmp_path / 'results' / 'new')!r})\n    {meddle}\n"
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=paths.ROOT)
    assert done.returncode == (0 if meddle == "pass" else 1), done.stdout
    assert ("the tests changed" in done.stdout) == (meddle != "pass")


def test_what_counts_as_a_change(tmp_path):
    (tmp_path / "kept").write_text("a")
    (tmp_path / "lost").write_text("a")
    before = state_of(tmp_path)
    assert changed(before, state_of(tmp_path)) == []
    (tmp_path / "lost").unlink()
    (tmp_path / "folder").mkdir()
    (tmp_path / "kept").write_text("longer")
    assert changed(before, state_of(tmp_path)) == ["folder", "kept", "lost"]
    assert state_of(tmp_path / "none") == {}


def test_a_campaign_that_runs_is_seen(tmp_path):
    assert not campaign_runs(tmp_path)
    hold_lock(tmp_path)
    assert campaign_runs(tmp_path)


def test_nothing_that_is_read_is_executed():
    """Scenarios, submissions and results are data: no pickles, no eval, no loader that makes objects, no shell."""
    # start.py's rules come from the command line that confined.py writes: marshal is what Python has without an import that costs time.
    allowed = {
        "bbrlab/base/yaml_files.py": "UniqueLoader",
        "bbrlab/kernel/confine/confined.py": r"import marshal|marshal\.dumps\(spec\)",
        "bbrlab/kernel/confine/start.py": r"import marshal|marshal\.loads\(bytes\.fromhex\(sys\.argv\[1\]\)\)",
    }
    forbidden = r"\b(pickle|joblib|shelve|marshal|dill)\b|\b(eval|exec)\(|read_pickle|allow_pickle|yaml\.(unsafe_|full_)?load\(|shell=True|os\.system"
    found = {
        (str(path.relative_to(paths.ROOT)), line.strip())
        for path in (p for name in PACKAGES for p in (paths.ROOT / name).rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(forbidden, line)
    }
    assert [(file, line) for file, line in found if not re.search(allowed.get(file, "$^"), line)] == []


def test_a_table_that_memory_has_no_room_for_is_not_read(tmp_path, monkeypatch):
    """Equal values take next to no room in a file, and all of it in memory; honest samples may be nearly as small."""
    file = tmp_path / "samples.parquet"
    column = pa.array(np.zeros(100_000))
    pq.write_table(pa.table({"time_s": column, "flow": column}), file)
    assert len(read_table(file)) == 100_000 > 30 * file.stat().st_size / 2
    with pytest.raises(DamagedFile, match="100000 rows; such a run has at most 99999"):
        read_table(file, most_rows=99_999)
    monkeypatch.setattr(tables, "available_bytes", lambda: 3e6)
    with pytest.raises(UserError, match="has 100000 rows; to read 2 columns of them takes about 0.0 GB of memory"):
        read_table(file)
    assert len(read_table(file, ["flow"])) == 100_000
