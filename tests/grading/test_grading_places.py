"""Where the parts of a submission lie: archives of other systems, files beside the folder, folders in folders. And who somebody is."""

from __future__ import annotations

import csv
import io
import json
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab_apps.grading import grade
from bbrlab_apps.grading.grade import check_out
from bbrlab_apps.grading.load import load_rubric
from bbrlab_apps.grading.personal import checked_id, personal
from bbrlab_apps.grading.report import class_table, page
from bbrlab_apps.grading.rubric import Limits
from bbrlab_apps.grading.submission import Submission, open_submission
from bbrlab_apps.grading.submitted_content import read_content
from tests.graded import write_rubric

PARTS = ("scenario.yaml", "answers.yaml", "notebook.ipynb", "results/a/summary.json")


def below(folder: str, parts: Iterable[str] = PARTS, by: str = "/") -> list[str]:
    return [f"{folder}{part}".replace("/", by) for part in parts]


def handed_in(tmp_path: Path, names: Iterable[str], kind: str) -> Submission:
    """Files of these names, packed or as a folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    path = tmp_path / {"zip": "ada.zip", "tar": "ada.tar", "folder": "ada"}[kind]
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "x")
    elif kind == "tar":
        with tarfile.open(path, "w") as archive:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size = 1
                archive.addfile(info, io.BytesIO(b"x"))
    else:
        for name in names:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text("x")
    return open_submission(path, Limits(), scratch)


WHOLE = [
    below(""), below("./"), below("hw/"), below("a/b/c/"), below("hw/", by="\\"), below("a/b/", by="\\"), ["hw\\", *below("hw/", by="\\")],
    [*below("hw/"), "desktop.ini", ".gitignore", ".git/config", "__MACOSX/hw/._answers.yaml", "Thumbs.db", ".DS_Store"],
    [*below("hw/"), "Desktop.ini", ".vscode/settings.json", "README.md", "code/make.py"],
    [*below("hw/"), "hw/.git/HEAD", "hw/code/x.py", "hw/old/scenario.yaml"],
    [*below(""), "old/scenario.yaml", "old/answers.yaml"], [*below(""), "results/b/scenario.yaml"],
]  # fmt: skip


@pytest.mark.parametrize("kind", ["zip", "tar", "folder"])
@pytest.mark.parametrize("names", WHOLE, ids=range(len(WHOLE)))
def test_the_folder_with_the_scenario_is_the_submission(names, kind, tmp_path):
    found = handed_in(tmp_path, [n for n in names if kind == "zip" or not n.endswith("\\")], kind)
    assert set(PARTS) <= set(found.files) and found.problems == []
    assert set(found.elsewhere) <= {"README.md", "code/make.py"}


@pytest.mark.parametrize("name", ["..\\..\\x", "a\\..\\..\\x", "C:\\x", "c:x", "\\x", "\\\\server\\x", "/x", "a/../x"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_backslash_leads_out_as_little_as_a_slash(name, kind, tmp_path):
    found = handed_in(tmp_path, [*PARTS, name], kind)
    assert set(found.files) == set(PARTS)
    (told,) = found.problems
    assert "leads out of the submission" in told or "a place of the whole machine" in told
    assert {p.name for p in tmp_path.iterdir()} == {"scratch", f"ada.{kind}"}


def test_one_name_in_two_spellings_is_there_twice(tmp_path):
    found = handed_in(tmp_path, [*PARTS, "results\\a\\summary.json"], "zip")
    assert found.problems == ["results/a/summary.json: is there twice; left out"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["hw/answers.yaml", "hw/results/a/summary.json"], "scenario.yaml is missing"),
        (["Scenario.yaml"], "scenario.yaml is missing (but there is Scenario.yaml; it must be named scenario.yaml"),
        (["hw/answers.yaml", "scenario.yml"], "scenario.yaml is missing (but there is scenario.yml;"),
        (["scenario.yaml", "hw/answers.yaml"], "answers.yaml is missing (but there is hw/answers.yaml;"),
        (["hw/scenario.yaml", "answers (1).yaml"], "answers.yaml is missing (but there is answers (1).yaml;"),
        (["scenario.yaml", "answers.yaml.txt"], "answers.yaml is missing (but there is answers.yaml.txt;"),
        (["hw/scenario.yaml", "runs/results/a/summary.json"], "results/ has no run: no folder with summary.json, manifest.json, samples.parquet (but there is runs/results/a/summary.json;"),
        (["scenario.yaml", "Results/a/samples.parquet"], "(but there is Results/a/samples.parquet; each run must lie in a folder of its own in results/)"),
        (["a/scenario.yaml", "b/scenario.yaml"], "scenario.yaml is in a/, b/: which of them is handed in? Hand in one folder that has each part once"),
    ],
)  # fmt: skip
def test_nothing_is_missing_without_a_word_of_where_it_lies(names, told, tmp_path):
    rubric = load_rubric(write_rubric(tmp_path))
    path = tmp_path / "ada"
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("x: 1")
    found = read_content(path, rubric, personal(rubric, "ada"), None, tmp_path)  # type: ignore[arg-type]
    assert any(text.startswith(told) or told in text for text in found["incomplete"]), found["incomplete"]


BROKEN_ANSWERS = [
    "%YAML 1.10\n---\nstudent: ada\nanswers: {colour: red}\n", 'student: ada\nanswers: {colour: "\\ud800"}\n', "student: ada\nanswers: {share: !!set [b]}\n",
    "student: ada\nanswers: !!map [b]\n", "!!map x", "!!omap {a: 1}", "!!pairs [[a]]", "? [a]\n: b\n", "answers: {? {a: b} : c}\n", "\ufeff\ufeffstudent: ada\n",
    "student: !!timestamp x\nanswers: {}\n", "student: 2020-13-01\nanswers: {a: !!int 08}\n", "student: \x85\nanswers: {a: !!float x}\n", "answers: !!binary _\n",
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN_ANSWERS, ids=range(len(BROKEN_ANSWERS)))
@pytest.mark.parametrize("name", ["answers.yaml", "scenario.yaml"])
def test_a_broken_part_costs_itself_and_is_named(name, text, tmp_path):
    """Looked at in this process, where an exception would show; the other parts are looked at all the same."""
    rubric = load_rubric(write_rubric(tmp_path))
    own = personal(rubric, "ada")
    path = tmp_path / "ada"
    path.mkdir()
    (path / "scenario.yaml").write_text("x: 1")
    (path / "answers.yaml").write_text("student: ada\nanswers: {colour: red}\n")
    (path / "notebook.ipynb").write_text('{"cells": [{}]}')
    (path / name).write_text(text, encoding="utf-8")
    found = read_content(path, rubric, own, None, tmp_path)  # type: ignore[arg-type]
    told = [*found["incomplete"], *found["scenario_wrong"]]
    assert any(name in line for line in told) or found["answers"], told
    assert not any("notebook" in line for line in told) and str(tmp_path) not in str(told)
    if name == "scenario.yaml":
        assert found["answers"] == {"colour": "red"}
    str(found).encode()  # what is told can be written


@pytest.mark.parametrize(
    "id",
    [
        "\u0430da",
        "ad\u0430",
        "\uff41\uff44\uff41",
        "ad\u03b1",
        "\ufb01n",
        "a\u200bda",
        "a\u202eda",
        "ada\u00b2",
        "\x1b[2J",
    ],
)
def test_an_id_that_looks_like_another_is_refused(id):  # fmt: skip
    with pytest.raises(UserError, match="--student: .*(looks like another id, for it has|is no student's id)"):
        checked_id(id)


@pytest.mark.parametrize(
    "id", ["ada", "Zoë", "\u0430\u043d\u043d\u0430", "山田taro", "ada.lovelace@x.org", "O'Neil", "-1+1", "José María"]
)
def test_an_id_of_one_alphabet_is_an_id(id):  # fmt: skip
    assert checked_id(id)


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "\x1b[2J\x1b]0;x\x07",
    "=1+1\r\n@x",
    "\u202egnp",
    "\x9b31m",
    "a\u2028b",
    "\x00",
)


def texts_in(content: object) -> Iterable[str]:
    if isinstance(content, dict):
        content = [*content, *content.values()]
    if isinstance(content, list | tuple):
        for inner in content:
            yield from texts_in(inner)
    elif isinstance(content, str):
        yield content


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_a_submission_says_is_text_of_one_line(text, tmp_path):
    """What comes out goes to terminals, pages and tables: nothing in it can steer them."""
    rubric = load_rubric(write_rubric(tmp_path))
    path = tmp_path / "ada"
    run = path / "results" / "a"
    run.mkdir(parents=True)
    (path / "answers.yaml").write_text(
        json.dumps({"student": text, "answers": {text: text, "colour": text, "bdp_bytes": text}})
    )
    (path / "scenario.yaml").write_text(
        json.dumps({"name": text, text: text, "network": {"rate_mbit": text}, "flows": [{"cca": text}]})
    )
    (path / "notebook.ipynb").write_text(json.dumps({"cells": text}))
    (run / "manifest.json").write_text(json.dumps({"scenario": {text: text}, "seed": text}))
    (run / "summary.json").write_text(json.dumps({text: text}))
    (run / "samples.parquet").write_text(text)
    for name in (f"{text.replace('/', '')}.py", f"{text.replace('/', '')}.txt"):
        if "\0" not in name:
            (path / name).write_text("")
    found = read_content(path, rubric, personal(rubric, "ada"), None, tmp_path)  # type: ignore[arg-type]
    said = list(texts_in(found))
    assert said and all(line.isprintable() for line in said), [line for line in said if not line.isprintable()]
    made = {"key": "", "student": "ada", "title": "t", "parameters": {}, "seeds": [], "score": 0.0, "of": 1.0, "flags": [(t, t) for t in said], "notes": said,
            "items": [{"id": t, "title": t, "score": 0.0, "of": 1.0, "told": [t], "for_teacher": [t]} for t in said], "runs": [], "reruns": [], "pending": [], "late": ""}  # fmt: skip
    assert "<img" not in page(made)  # type: ignore[arg-type]
    rows = csv.reader(io.StringIO(class_table({"ada": made})))  # type: ignore[dict-item]
    assert not any(cell[:1] in ("=", "+", "-", "@", "\t", "\r") for row in rows for cell in row)


@pytest.mark.parametrize("name", ["report.html", "results.json", "grade.json", "examined.json"])
def test_a_grade_replaces_grades_and_nothing_else(tmp_path, name):
    mine = {"assignment": "mine", "examined": True, "tests": [{"visibility": "visible"}]}  # as in many a file
    (tmp_path / name).write_text(json.dumps(mine, indent=1))
    with pytest.raises(UserError, match=f"{name}: is there, and does not have the mark"):
        check_out(tmp_path, tmp_path / "ada")


def refused_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *argv: str) -> str:
    """What ``bbrlab grade`` says that writes nothing."""
    rubric = write_rubric(tmp_path)
    monkeypatch.setattr("bbrlab_apps.grading.rerun.ready", lambda rubric: SimpleNamespace(key="k"))
    before = sorted(tmp_path.rglob("*"))
    found = CliRunner().invoke(app, ["grade", *argv, "--rubric", str(rubric)])
    assert isinstance(found.exception, UserError) and sorted(tmp_path.rglob("*")) == before
    return str(found.exception)


@pytest.mark.parametrize(
    ("where", "argv"),
    [
        (".", ("one/ada", "--out", "one")),
        (".", ("one/ada", "--out", "one/ada")),
        (".", ("one/ada", "--out", "one/ada/grades/all")),
        (".", ("one/ada", "--out", "link")),
        ("one", ("ada", "--out", ".")),
        ("one/ada", (".",)),
        (".", ("one/ada", "--student", "bob", "--out", "one/ada")),
        (".", ("--class", "links", "--out", "one")),
    ],
)
def test_right_answers_are_not_written_into_the_submission(tmp_path, monkeypatch, where, argv):
    (tmp_path / "one/ada").mkdir(parents=True)
    (tmp_path / "one/ada/answers.yaml").touch()
    (tmp_path / "link").symlink_to("one")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/ada").symlink_to("../one/ada")
    monkeypatch.chdir(tmp_path / where)
    said = refused_place(tmp_path, monkeypatch, *argv)
    assert "lies in the submission" in said and "a grade has the right answers; choose another folder" in said


@pytest.mark.parametrize("argv", [("one/ada", "--student", "bob", "--out", "two"), ("--class", "one", "--out", "two")])
def test_right_answers_are_not_written_into_another_submission(tmp_path, monkeypatch, argv):
    """One student's under another's name, and a class's into the folder of another class."""
    for place in ("one/ada", "one/bob", "two/bob/homework"):
        (tmp_path / place).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    said = refused_place(tmp_path, monkeypatch, *argv)
    assert said.startswith("--out two/bob: has homework and no grade; it may be a submission")


def test_a_submission_is_graded_again_where_it_was_graded(tmp_path, monkeypatch):
    """Each file of a grade has the mark by which it may be replaced."""
    monkeypatch.setattr(grade, "ready", lambda rubric: SimpleNamespace(key="k"))
    (tmp_path / "ada").mkdir()
    rubric, out = write_rubric(tmp_path), tmp_path / "grade"
    first = grade.grade_submission(tmp_path / "ada", rubric, "ada", out)
    assert {path.name for path in out.iterdir()} == {"report.html", "results.json", "grade.json", "examined.json"}
    check_out(out, tmp_path / "ada")
    assert json.loads(json.dumps(first)) == json.loads(
        json.dumps(grade.grade_submission(tmp_path / "ada", rubric, "ada", out))
    )
