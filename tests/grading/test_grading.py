"""Grading: what is drawn, what is asked, what is found, what is written (broken submissions: test_grading_broken.py)."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
import yaml
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.results.nested import differences
from bbrlab.run.conditions import CONDITIONS
from bbrlab.scenario.load import load_scenario, points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab_apps.grading import limited
from bbrlab_apps.grading import load as grading_load
from bbrlab_apps.grading.answers import answers_of
from bbrlab_apps.grading.classroom import class_matches, submissions_in
from bbrlab_apps.grading.grade import NOTHING, UNREADABLE, grade_submission, read_submission, rerun_result
from bbrlab_apps.grading.judge import judge
from bbrlab_apps.grading.limited import Refused, run_limited
from bbrlab_apps.grading.load import load_rubric
from bbrlab_apps.grading.personal import drawn_seeds, personal, too_much
from bbrlab_apps.grading.report import GRADESCOPE, PAGE, class_table, page
from bbrlab_apps.grading.rerun import BEYOND, DIFFERS, NOT_RUN, SAME, Rerun, drawn_runs, run_again
from bbrlab_apps.grading.rubric import Limits, Values
from bbrlab_apps.grading.submission import PARTS, Submission
from bbrlab_apps.grading.submitted_runs import (
    COPIED,
    EDITED_MANIFEST,
    EDITED_SAMPLES,
    EDITED_SUMMARY,
    OTHER_KERNEL,
    OTHERS_RUN,
)
from bbrlab_apps.grading.submitted_scenario import compared, differing
from docs._make.rubric import TABLES
from tests.graded import (
    RUBRIC,
    careful_summary,
    copied,
    edit_json,
    edit_samples,
    first_run,
    graded,
    kinds,
    score_of,
    words,
    write_rubric,
)

COURSES = sorted(p.parent for p in (paths.ROOT / "courses").glob("*/rubric.yaml"))
of_each_course = pytest.mark.parametrize("course", COURSES, ids=[c.name for c in COURSES])


def bbrlab(*argv: object, cwd: Path = paths.ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bbrlab.cli.main", *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


# What is drawn.


def test_the_same_id_draws_the_same_everywhere(tmp_path):
    """By hand: HMAC-SHA256 with the salt as key over name, id and what is drawn, as a number, modulo how many there are."""
    own = personal(load_rubric(write_rubric(tmp_path)), "ada")
    assert own.parameters == {"rate_mbit": 11.0, "rtt_ms": 22}
    assert own.seeds == [24492000, 67212619]
    assert own.assignment.scenario.network.rate_mbit == 11.0


def test_ids_names_and_salts_draw_differently(tmp_path):
    rubric = load_rubric(write_rubric(tmp_path))
    seeds = [personal(rubric, f"student-{i}").seeds for i in range(200)]
    assert len({seed for mine in seeds for seed in mine}) == 400
    rates = {personal(rubric, f"student-{i}").parameters["rate_mbit"] for i in range(200)}
    assert rates == {8 + i / 2 for i in range(9)}  # each that there is, both ends included
    for changes in ({"salt": "another secret of theirs"}, {"name": "other"}):
        assert personal(load_rubric(write_rubric(tmp_path, **changes)), "student-1").seeds != seeds[1]


@pytest.mark.parametrize("id", ["", "  ", "a/b", "..", "a\nb", "x" * 101, "\x1b[2J"])
def test_an_id_is_plain_text(id, tmp_path):
    with pytest.raises(UserError, match="--student"):
        personal(load_rubric(write_rubric(tmp_path)), id)


def test_assign_prints_and_writes_what_is_drawn(tmp_path):
    rubric = write_rubric(tmp_path)
    done = bbrlab(
        "assign", "--rubric", rubric, "--student", "ada", "--student", "=bob", "--csv", tmp_path / "drawn.csv"
    )
    assert done.returncode == 0, done.stderr
    assert "student: ada\n  rate_mbit: 11.0\n  rtt_ms: 22\n  seeds: 24492000 67212619\n" in done.stdout
    rows = list(csv.reader(io.StringIO((tmp_path / "drawn.csv").read_text())))
    assert rows[:2] == [["student", "rate_mbit", "rtt_ms", "seeds"], ["ada", "11.0", "22", "24492000 67212619"]]
    assert rows[2][0] == "'=bob"  # no formula of a spreadsheet


# Rubrics.


def swept(**claim: object) -> dict[str, object]:
    """Changes of the rubric: two buffers, and one claim on them."""
    whole = RUBRIC["claims"][0] | {"at": {"a": {"along": "network.buffer.bdp"}}, "metric": "loss"} | claim
    scenario = RUBRIC["scenario"] | {"sweep": {"network.buffer.bdp": [1, 2]}}
    return {"questions": [], "claims": [whole], "scenario": scenario}


# Runs of 400 s, which take some 4 s, of which two are made again.
DEAR = {"rerun": 2, "points": RUBRIC["points"] | {"rerun": 5}, "scenario": RUBRIC["scenario"] | {"duration_s": 400, "window_s": [1, 400]}}  # fmt: skip
WRONG = [
    ({"claims": [{"id": "a"}]}, "rubric.yaml:", "'claims.0.says' is missing"),
    ({"seeds": "3"}, "rubric.yaml:", 'seeds = "3": must be a whole number'),
    ({"sedes": 3}, "rubric.yaml:", "sedes: unknown key; did you mean 'seeds'?"),
    ({"limits": {"run": 3}}, "rubric.yaml:", "limits.run: unknown key; did you mean 'runs'?"),
    ({"questions": [{"id": "a", "asks": "What is it, then?", "point": 1}]}, "rubric.yaml:", "did you mean 'points'?"),
    ({"questions": [{"id": "a", "asks": "What is it, then?", "points": 1}]}, "", "exactly one of value, choice"),
    ({"questions": [{"id": "a", "asks": "What is it, then?", "points": 1, "value": 1}]}, "", "needs one of within"),
    ({"questions": [{"id": "a", "asks": "What is it, then?", "points": 1, "verdict_of": "b"}]}, "", "there is no claim 'b'"),
    ({"questions": [{"id": "a", "asks": "What is it, then?", "points": 1, "value": "{x}", "within": 1}]}, "rubric.yaml:", "no parameter 'x'"),
    ({"questions": [{"id": "a", "asks": "What is it, then?", "points": 1, "value": "1 / 0", "within": 1}]}, "rubric.yaml:", "no finite number"),
    ({"questions": [{"id": "a", "asks": "What is it, then?", "points": 1, "value": "open('x')", "within": 1}]}, "", "no function open"),
    ({"questions": [{"id": "a", "asks": "What is it, then?", "points": 1, "choice": "{rtt_ms}", "choices": ["{rtt_ms}", "9"]}]}, "rubric.yaml:", "questions.a: choice"),
    ({"parameters": {"rate_mbit": {"one_of": [8]}, "rtt_ms": {"one_of": [8]}}, "questions": [{"id": "a", "asks": "What is it, then?", "points": 1, "choice": "{rtt_ms} ms", "choices": ["{rtt_ms} ms", "8 ms"], "hints": [{"says": "xxxxx", "choice": "8 ms"}]}]}, "rubric.yaml:", "questions.a: hints: '8 ms' is no wrong choice"),
    ({"parameters": {"rate_mbit": {"low": 3, "high": 1}, "rtt_ms": {"one_of": [1]}}}, "", "low 3 must not be above high 1"),
    ({"parameters": {"rate_mbit": {"low": 1, "high": 2}, "rtt_ms": {"one_of": [1]}}}, "", "needs a step"),
    ({"parameters": {"rate_mbit": {"one_of": [0, 8]}, "rtt_ms": {"one_of": [20]}}}, "rubric.yaml:", "network.rate_mbit = 0"),
    ({"scenario": {"name": "x"}}, "rubric.yaml:", "'network' is missing"),
    ({"free": {"network.rate": {"one_of": [1]}}}, "rubric.yaml:", "'network.rate' is no value of the scenario"),
    ({"points": {"rerun": 5}}, "", "points.rerun and rerun go together"),
    ({"points": {}, "claims": [], "questions": []}, "", "at least some points"),
    ({"salt": "short"}, "rubric.yaml:", "salt"),
    ({"limits": {"runs": 1}}, "rubric.yaml:", "more runs than limits.runs"),
    ({"questions": [], "claims": [{**RUBRIC["claims"][0], "metric": "goodputt"}]}, "rubric.yaml:", "there is no column 'goodputt'"),
    ({"questions": [], "claims": [{**RUBRIC["claims"][0], "metric": "f(x)"}]}, "rubric.yaml:", "no function f"),
    ({"questions": [], "claims": [{**RUBRIC["claims"][0], "expect": {"value": 1}}]}, "rubric.yaml:", "needs one of within"),
    ({"questions": [], "claims": [{**RUBRIC["claims"][0], "at": {"where": {"buffer_bdp": 9}}}]}, "rubric.yaml:", "no point of the scenario matches"),
    ({"questions": [], "claims": [{**RUBRIC["claims"][0], "at": {"group": 7}}]}, "rubric.yaml:", "group 7 does not exist"),
    (swept(metric=None, expect={"order": ["a.loss", "mean(a.loss)"]}), "rubric.yaml:", "each expression must have a value for each of the same points, or one number"),
    (swept(at={"along": "network.bufer.bdp"}), "rubric.yaml:", "at.along: 'network.bufer.bdp' tells no points of the scenario apart"),
    (swept(at={"along": "network.buffer.bdp", "where": {"network.buffer.bdp": 2}}), "rubric.yaml:", "at.along: one point of the scenario matches"),
    (swept(metric="mean(a.loss)", expect={"value": 1e308, "within": 1e308}), "rubric.yaml:", "expect: its bounds are too large"),
    (swept(metric="fraction_above(a.loss, a.loss)", expect={"above": 0}), "rubric.yaml:", "must be one number"),
    (swept(metric="a.burst", at={"a": {"along": "network.buffer.bdp", "group": 1}}), "rubric.yaml:", "there is no column 'a.burst'"),
    (swept(at={"figure": "tang/fig2"}), "rubric.yaml:", "at: figure: a rubric has one scenario"),
    (swept(at={"a": {"published": "tang/fig2:loss"}}), "rubric.yaml:", "at: published: published values belong to papers"),
    ({**DEAR, "limits": {"run_s": 3}}, "rubric.yaml:", "s, allowed are 3; allow more, or ask for less (with rate_mbit 8"),
    ({**DEAR, "limits": {"end_s": 3}}, "rubric.yaml:", "limits.end_s: a run would need about "),
    ({**DEAR, "limits": {"disk_mb": 0.01}}, "rubric.yaml:", "MB of disk, allowed are 0.01"),
    ({**DEAR, "limits": {"rerun_s": 6}}, "rubric.yaml:", "limits.rerun_s: 2 runs made again (rerun) would need up to about "),
    ({"parameters": {"rate_mbit": {"one_of": [8, 0, 9]}, "rtt_ms": {"one_of": [20]}}}, "rubric.yaml:", "network.rate_mbit = 0"),
    ({"parameters": {"rate_mbit": {"one_of": [8, 0]}, "rtt_ms": {"one_of": [20]}, **{f"x{i}": {"one_of": [1, 2]} for i in range(6)}}}, "rubric.yaml:", "network.rate_mbit = 0"),
    ({"parameters": RUBRIC["parameters"] | {"rtt_ms": {"low": 20, "high": 35, "step": 10}}}, "rubric.yaml:", "high 35 is none of the values: from low 20 in steps of 10 the last is 30"),
    ({"scenario": RUBRIC["scenario"] | {"trials": 9}}, "rubric.yaml:", "scenario.trials would have no effect: each point is run with the seeds"),
    ({"late": {"free_days": 5, "last_day": 2}}, "rubric.yaml:", "late.free_days would have no effect"),
    ({"late": {"free_days": 5, "percent_per_day": 0}}, "rubric.yaml:", "late.free_days would have no effect"),
    ({"rerun": 3, "points": {"rerun": 5}}, "rubric.yaml:", "rerun: 3 is more than the 2 runs asked for; give 2, to have all made again"),
    ({"limits": {"submission_mb": 0.001}}, "rubric.yaml:", "limits.submission_mb: the runs asked for have about 0.0"),
    ({"limits": {"files": 11}}, "rubric.yaml:", "limits.files: a submission has at least 12 files and folders, allowed are 11"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "where", "problem"), WRONG, ids=[p for _, _, p in WRONG])
def test_what_is_wrong_with_a_rubric_is_named(changes, where, problem, tmp_path):
    with pytest.raises(UserError) as told:
        load_rubric(write_rubric(tmp_path, **changes))
    assert problem in str(told.value) and where in str(told.value)


def test_a_rubric_whose_runs_cannot_be_made_again_is_refused_before_anybody_gets_it(tmp_path):
    """The assignment on fairness at a rate that takes minutes; without runs made again it may cost what it likes."""
    content = yaml.safe_load((paths.ROOT / "courses" / "fairness" / "rubric.yaml").read_text(encoding="utf-8"))
    content["parameters"]["rate_mbit"] = {"low": 800, "high": 1000, "step": 50}
    content["scenario"] |= {"duration_s": 600, "window_s": [20, 600]}
    file = tmp_path / "rubric.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    line = next(i for i, text in enumerate(file.read_text().splitlines(), 1) if "run_s: 30" in text)
    with pytest.raises(UserError) as told:
        load_rubric(file)
    assert re.search(
        rf"rubric.yaml:{line}: limits.run_s: a run with network.buffer.bdp 1 would need about \d+ s, allowed are 30; "
        r"allow more, or ask for less \(with rate_mbit 800,",
        str(told.value),
    ), told.value
    file.write_text(yaml.safe_dump(content | {"rerun": 0, "points": content["points"] | {"rerun": 0}}))
    load_rubric(file)


@pytest.mark.parametrize(
    ("given", "allowed", "refused", "words"),
    [
        ({"low": 5, "high": 50, "step": 5}, [5, 10.0, 50], [7.3, 4, 55, True, "10", None], "5 to 50 in steps of 5"),
        ({"low": 0.1, "high": 1, "step": 0.1}, [0.3, 0.1 + 0.2, 0.7, 1], [0.35, 0.3001], "0.1 to 1 in steps of 0.1"),
        ({"low": 1, "high": 8}, [1, 7.5, 8], [0.9, 8.1, True], "1 to 8"),
        ({"one_of": ["bbr1", 3]}, ["bbr1", 3], ["bbr2", 4], "one of bbr1, 3"),
    ],
)
def test_what_may_be_chosen(given, allowed, refused, words):
    values = Values.model_validate(given)
    assert all(values.allow(value) for value in allowed)
    assert not any(values.allow(value) for value in refused)
    assert str(values) == words


def test_every_value_of_a_rubric_is_tried(tmp_path, monkeypatch):
    """Of a parameter with very many values some, its ends among them; and the ends of all together."""
    tried: list[dict[str, object]] = []
    none_asked = SimpleNamespace(questions=[])
    monkeypatch.setattr(grading_load, "filled_in", lambda rubric, values: tried.append(values) or none_asked)
    several = {f"p{i}": {"one_of": [1, 2, 3]} for i in range(8)} | {"q": {"low": 1, "high": 100_000, "step": 1}}
    load_rubric(write_rubric(tmp_path, parameters=several))
    for name in several:
        found = {values[name] for values in tried}
        assert (len(found) == 200 and {1, 100_000} <= found) if name == "q" else found == {1, 2, 3}
    assert dict.fromkeys(several, 3) | {"q": 100_000} in tried and len(tried) < 400


def test_a_parameter_that_nothing_is_of_is_noted(tmp_path):
    parameters = RUBRIC["parameters"] | {"size": {"one_of": [1, 2]}}
    (note,) = grading_load.notes_on(load_rubric(write_rubric(tmp_path, parameters=parameters)))
    assert note.startswith("parameters.size: neither scenario nor claims or questions have {size}")
    assert not grading_load.notes_on(load_rubric(write_rubric(tmp_path)))


def test_a_deadline_that_costs_nothing_is_noted(tmp_path):
    """It may be meant: who is late is told. The default of a day's cost is another."""
    late = {"deadline": "2026-12-01T23:59:00+01:00"}
    (note,) = grading_load.notes_on(load_rubric(write_rubric(tmp_path, late={**late, "percent_per_day": 0})))
    assert note.startswith("late: has a deadline, and no late day costs anything")
    for other in (late, {**late, "percent_per_day": 0, "last_day": 3}):
        assert not grading_load.notes_on(load_rubric(write_rubric(tmp_path, late=other)))


def test_a_default_number_of_runs_made_again_fits_any_assignment(tmp_path):
    content = {key: value for key, value in RUBRIC.items() if key != "rerun"} | {"seeds": 1, "points": {"rerun": 5}}
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(content))
    assert load_rubric(tmp_path / "r.yaml").rerun == 2


def test_values_that_make_no_assignment_together_are_named(tmp_path):
    """Each value is tried, but not each with each: what is left is told when it is drawn."""
    parameters = {"rate_mbit": {"one_of": [8, 9, 10]}, "rtt_ms": {"one_of": [20, 30, 40]}}
    value = "1 / (({rate_mbit} - 9) ** 2 + ({rtt_ms} - 30) ** 2)"
    question = {"id": "a", "asks": "What is it, then?", "points": 1, "value": value, "within": 1}
    rubric = load_rubric(write_rubric(tmp_path, parameters=parameters, questions=[question]))
    with pytest.raises(
        UserError, match=r"rubric tiny, as drawn for .*no finite number \(with rate_mbit 9, rtt_ms 30\)"
    ):
        for number in range(100):
            personal(rubric, f"student-{number}")


def test_a_rubric_that_is_none(tmp_path):
    for text, problem in (("- 1\n", "a rubric is a mapping"), ("a: [\n", "not valid YAML"), ("a: &a [*a]\n", "alias")):
        (tmp_path / "r.yaml").write_text(text)
        with pytest.raises(UserError, match=problem):
            load_rubric(tmp_path / "r.yaml")
    with pytest.raises(UserError, match=r"give the path of a RUBRIC\.yaml"):
        load_rubric(tmp_path / "none.yaml")


def test_the_tables_of_the_keys_are_the_schemas():
    assert all(info.description for model in TABLES.values() for info in model.model_fields.values())


# The teacher's kit.


@of_each_course
def test_an_assignment_is_whole(course):
    rubric = load_rubric(course / "rubric.yaml")
    assert rubric.name == course.name and rubric.total == 100
    text = (course / "assignment.md").read_text(encoding="utf-8")
    for question in rubric.questions:
        assert f"| `{question.id}` |" in text
    for name in rubric.parameters:
        assert f"`{name}`" in text
    for folder in ("template", "reference"):
        answers = yaml.safe_load((course / folder / "answers.yaml").read_text(encoding="utf-8"))
        assert list(answers["answers"]) == [q.id for q in rubric.questions]
        notebook = nbformat.read(course / folder / "notebook.ipynb", as_version=4)
        nbformat.validate(notebook)
        assert not any(cell.get("outputs") for cell in notebook.cells)


@of_each_course
def test_a_template_is_not_yet_a_solution(course):
    with pytest.raises(UserError):
        load_scenario(course / "template" / "scenario.yaml")


@of_each_course
def test_a_reference_solution_answers_its_own_assignment(course):
    own = personal(load_rubric(course / "rubric.yaml"), "reference")
    points = points_of(load_scenario(course / "reference" / "scenario.yaml"))
    assert compared(points, own.assignment.points, {}) == []
    commands = (course / "reference" / "run.sh").read_text(encoding="utf-8")
    assert f"for seed in {' '.join(map(str, own.seeds))}; do" in commands
    assert not any(too_much(p, load_rubric(course / "rubric.yaml").limits) for p in points)


def full_marks(course: Path, folder: Path) -> None:
    """Make a reference solution's runs and grade it."""
    solution = shutil.copytree(course / "reference", folder / "reference")
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run([solution / "run.sh"], check=True, env=environment)
    grade = grade_submission(solution, course / "rubric.yaml", "reference", folder / "out")
    assert grade["score"] == grade["of"] == 100 and not grade["flags"], words(grade)
    assert [again["outcome"] for again in grade["reruns"]] == [SAME, SAME]


@pytest.mark.guest
@pytest.mark.slow
def test_the_first_reference_solution_gets_full_marks(tmp_path):
    full_marks(paths.ROOT / "courses" / "first-dumbbell", tmp_path)


@of_each_course
def test_reference_answers_say_under_which_conditions_their_runs_were_made(course):
    """Under others they are wrong: make the runs again (run.sh of that folder), renew the answers, then this line."""
    first, _, _ = (course / "reference" / "answers.yaml").read_text(encoding="utf-8").partition("\n")
    assert first == f"# Of runs under these conditions: {CONDITIONS[-1]}"


@pytest.mark.guest
@pytest.mark.slow
@of_each_course
def test_each_reference_solution_gets_full_marks(course, tmp_path):
    full_marks(course, tmp_path)


# The scenario that was asked for.


def points_like(tmp_path: Path, **changes: object) -> list[Point]:
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(RUBRIC["scenario"] | {"network": {"rate_mbit": 10, "rtt_ms": 30, "buffer": {"bdp": 2}}} | changes))  # fmt: skip
    return points_of(load_scenario(tmp_path / "s.yaml"))


def test_a_scenario_is_compared_by_what_it_means(tmp_path):
    asked = points_like(tmp_path, sweep={"network.buffer.bdp": [1, 2, 4]})
    assert (
        compared(points_like(tmp_path, name="other", trials=7, sweep={"network.buffer.bdp": [4.0, 1, 2]}), asked, {})
        == []
    )
    cases = {f"b{b}": {"network.buffer.bdp": b} for b in (1, 2, 4)}
    assert compared(points_like(tmp_path, cases=cases), asked, {}) == []
    assert compared(points_like(tmp_path, sweep={"network.buffer.bdp": [1, 2]}), asked, {}) == [
        "lacks 1 of 3 points that are asked for"
    ]
    assert compared(points_like(tmp_path, sweep={"network.buffer.bdp": [1, 2, 3]}), asked, {}) == [
        "network.buffer.bdp is 3.0, asked for is 4.0"
    ]
    assert (
        "has 1 point too many"
        in compared(points_like(tmp_path, sweep={"network.buffer.bdp": [1, 2, 4, 8]}), asked, {})[0]
    )
    told = compared(points_like(tmp_path, duration_s=5, sweep={"network.buffer.bdp": [1, 2, 4]}), asked, {})
    assert told == ["duration_s is 5.0, asked for is 4.0"]  # fmt: skip


def test_what_is_free_is_free_within_its_limits(tmp_path):
    rubric = load_rubric(write_rubric(tmp_path, free={"network.buffer.bdp": {"low": 1, "high": 8}}))
    asked = points_like(tmp_path, sweep={"network.buffer.bdp": [1, 2]})
    assert compared(points_like(tmp_path, sweep={"network.buffer.bdp": [3, 7.5]}), asked, rubric.free) == []
    assert compared(points_like(tmp_path, sweep={"network.buffer.bdp": [3, 9]}), asked, rubric.free) == [
        "network.buffer.bdp is 9.0; it may be 1 to 8"
    ]
    assert compared(points_like(tmp_path, sweep={"network.buffer.bdp": [3]}), asked, rubric.free) == [
        "lacks 1 of 2 points that are asked for"
    ]
    told = compared(
        points_like(tmp_path, network={"rate_mbit": 10, "rtt_ms": 30, "buffer": {"packets": 9}}, sweep={}),
        asked[:1],
        rubric.free,
    )
    assert "network.buffer.packets is 9, asked for is not set" in told  # fmt: skip


def test_what_is_free_in_steps(tmp_path):
    rubric = load_rubric(write_rubric(tmp_path, free={"network.buffer.bdp": {"low": 1, "high": 8, "step": 0.5}}))
    (asked,) = points_like(tmp_path)
    for bdp, told in ((7.5, []), (7.3, ["network.buffer.bdp is 7.3; it may be 1 to 8 in steps of 0.5"])):
        assert compared(points_like(tmp_path, sweep={"network.buffer.bdp": [bdp]}), [asked], rubric.free) == told


def test_a_claim_whose_points_were_changed_freely_is_not_judged(tmp_path):
    """It was checked with the points of the rubric; on others two series may have no points in common."""
    pairs = {"low": {"where": {"network.buffer.bdp": [2, 6]}}, "high": {"where": {"network.buffer.bdp": [6, 12]}}}
    claim = RUBRIC["claims"][0] | {
        "at": {name: term | {"along": "network.buffer.bdp"} for name, term in pairs.items()}, "metric": "low.loss - high.loss",
    }  # fmt: skip
    rubric = write_rubric(
        tmp_path, claims=[claim], questions=[], free={"network.buffer.bdp": {"low": 1, "high": 20}},
        scenario=RUBRIC["scenario"] | {"sweep": {"network.buffer.bdp": [2, 6, 12]}},
    )  # fmt: skip
    own = personal(load_rubric(rubric), "ada")
    for chosen, told in (
        ([2, 6, 12], "not judged: 6 of its 6 runs missing, or not counted"),
        ([2, 6, 11], "not judged: at.high.along: one point of the scenario matches"),
        ([3, 7, 11], "not judged: at.low.where: no point of the scenario matches"),
    ):
        points = points_like(tmp_path, sweep={"network.buffer.bdp": chosen})
        content = [{"scenario": p.scenario.model_dump(exclude_unset=True), "values": p.values} for p in points]
        assert judge(own, NOTHING | {"points": content}, [], tmp_path)["some"]["told"].startswith(told)  # type: ignore[arg-type]
    assert judge(own, NOTHING, [], tmp_path)["some"]["told"] == "not judged: there is no scenario"


# Answers.


def answered(
    tmp_path: Path, text: str, student: str, **changes: object
) -> tuple[dict[str, object], dict[str, str], list[str]]:
    """The answers, those that are none, and what is missing."""
    file = tmp_path / "answers.yaml"
    file.write_text(text, encoding="utf-8")
    own = personal(load_rubric(write_rubric(tmp_path, **changes)), student)
    incomplete: list[str] = []
    return *answers_of(Submission({"answers.yaml": file}), own, incomplete), incomplete


@pytest.mark.parametrize("student", ["0123456", "1_234", "1:30", "yes", "null", "1e3", "0x1f", "2024-01-31", "é"])
def test_an_id_is_what_was_typed(student, tmp_path):
    """YAML reads some as numbers, dates or truths. Some machines write é as e with an accent after it."""
    for typed in (student, f'"{student}"', unicodedata.normalize("NFD", student)):
        assert answered(tmp_path, f"student: {typed}\nanswers: {{colour: red}}\n", student)[2] == []
    for typed, said in (("bob", "bob"), ("", ""), ("[ada]", "['ada']")):
        (told,) = answered(tmp_path, f"student: {typed}\nanswers: {{colour: red}}\n", student)[2]
        assert told == f"answers.yaml: says student {said!r}; it is graded as {student!r}"


def test_answers_are_what_was_typed(tmp_path):
    choice = {
        "id": "colour",
        "asks": "Is a red pen red or not?",
        "points": 1,
        "choice": "yes",
        "choices": ["yes", "no", "01"],
    }
    number = {"id": "bdp", "asks": "What is the product, then?", "points": 1, "value": 1, "within": 1}
    for typed, want in (("yes", "yes"), ("'no'", "no"), ("01", "01"), ("' Yes '", "yes"), ("NO", "no"), ("true", None)):
        found, lacking, _ = answered(
            tmp_path, f"student: ada\nanswers: {{colour: {typed}}}\n", "ada", questions=[choice]
        )
        assert found.get("colour") == want and (want is not None or "is none of: yes, no, 01" in lacking["colour"])
    for typed, value in (
        ("1e-3", 0.001),
        ("010", 10),
        ("-.5", -0.5),
        ("'7'", 7),
        ("1_000", 1000),
        ("'２３_７５０'", None),
        ("'٣'", None),
        ("true", None),
        ("1,5", None),
    ):
        found, lacking, _ = answered(tmp_path, f"student: ada\nanswers:\n  bdp: {typed}\n", "ada", questions=[number])
        assert found.get("bdp") == value and (value is not None or "is no number" in lacking["bdp"])
    assert answered(tmp_path, "student: ada\nanswers: {bdp: }\n", "ada", questions=[number])[1] == {"bdp": "no answer"}


@pytest.mark.parametrize(("typed", "words"), [
    ("82500 bytes", "write the number alone, without a unit: 82500"),
    ("0,48", "write a point for the comma: 0.48"),
    ("82,500", "write 82.500 or 82500"),
    ("0,480", "write a point for the comma: 0.480"),
    ("48 %", "write it without a percent sign, as the question asks for it"),
    ("1/3", "write a fraction as a decimal number"),
    ("1 234 567", "write the digits without anything between them"),
    ("about 5", "write one with digits and a point"),
    ("1e999", "write one with digits and a point"),
])  # fmt: skip
def test_an_answer_that_is_no_number_is_told_with_its_line_and_how_to_write_it(tmp_path, typed, words):
    number = {"id": "bdp", "asks": "What is the product, then?", "points": 1, "value": 1, "within": 1}
    text = f"student: ada\nanswers:\n  # in bytes\n  bdp: {typed}\n"
    told = answered(tmp_path, text, "ada", questions=[number])[1]["bdp"]
    assert told.startswith(f"answers.yaml:4: '{typed}' is no number: ") and words in told


def test_another_condition_is_told_with_its_value_and_the_asked_ones():
    content = RUBRIC["scenario"] | {"network": {"rate_mbit": 10, "rtt_ms": 20, "buffer": {"bdp": 1}}}
    asked = points_of(validate(content | {"sweep": {"network.buffer.bdp": [1, 16]}}, "asked"))

    def messages(**changes: Any) -> list[str]:
        return differing(points_of(validate(content | changes, "run"))[0], asked)

    assert messages(network=content["network"] | {"buffer": {"bdp": 4}}) == [
        "network.buffer.bdp is 4.0, asked for is 1.0 or 16.0"
    ]
    assert messages(flows=[{"cca": "bbr3"}, {"cca": "cubic"}]) == ['flows.0.cca is "bbr3", asked for is "bbr1"']
    assert messages(duration_s=5) == ["duration_s is 5.0, asked for is 4.0"]


@of_each_course
def test_an_assignment_says_what_for_how_long_and_what_to_discuss(course):
    parts = dict(
        (part.partition("\n")[0], part)
        for part in (course / "assignment.md").read_text(encoding="utf-8").split("\n## ")
    )
    goals, questions = list(parts.values())[1], list(parts.values())[-1]
    assert goals.startswith("What you will be able to do\n") and 2 <= goals.count("\n- ") <= 4
    assert re.search(r"\*\*Time\*\*: reading \d+ min.*, the \w+ runs \d to \d min, .* \d+ min", goals)
    assert questions.startswith("To discuss in class\n") and 2 <= len(re.findall(r"(?m)^\d\. ", questions)) <= 4


@of_each_course
def test_hints_have_the_words_of_the_assignment(course):
    """Names of metrics, such as share_of_goodput, are those that the students were given, not those of tables."""
    given = (course / "assignment.md").read_text(encoding="utf-8")
    for question in load_rubric(course / "rubric.yaml").questions:
        for hint in question.hints:
            assert all(f"`{name}" in given for name in re.findall(r"[\w.]+_[\w.]+\w", hint.says)), hint.says


# Limits.


def test_a_point_that_costs_too_much_is_not_run(tmp_path):
    (small,) = points_like(tmp_path)
    assert too_much(small, Limits()) == {}
    (long,) = points_like(tmp_path, duration_s=80_000, window_s=[0, 80_000], sample_hz=1000)
    found = too_much(long, Limits())
    assert "s, allowed are 60" in found["run_s"] and "MB of disk, allowed are 500" in found["disk_mb"]
    (wide,) = points_like(tmp_path, network={"rate_mbit": 12_000, "rtt_ms": 10_000, "buffer": {"bytes": 4_000_000_000}})
    assert "MB of memory, allowed are 2000" in too_much(wide, Limits())["memory_mb"]


def test_what_is_beyond_the_limits_is_told_and_not_run(tmp_path):
    """With values that were free to choose a run may cost more than those that were asked for."""
    (point,) = points_like(tmp_path, duration_s=400, window_s=[1, 400])
    run = {"name": "results/a", "scenario": point.scenario.model_dump(exclude_unset=True), "seed": 1, "notes": []}
    for limits, told in (
        ({"run_s": 1}, r"would need about \d[.\d]* s, allowed are 1"),
        ({"rerun_s": 1}, r"would need about \d[.\d]* s; of 1 s for all of the sample 1 are left"),
    ):
        rubric = load_rubric(write_rubric(tmp_path, limits=limits))
        (found,) = run_again(rubric, [run], [0], None, tmp_path)  # type: ignore[arg-type, list-item]
        assert found["outcome"] == NOT_RUN and found["kind"] == BEYOND
        assert re.fullmatch(told, found["told"]), found["told"]


def outcomes_of(*outcomes: str) -> list[Rerun]:
    return [{"run": i, "name": f"r{i}", "outcome": o, "kind": "", "told": "so it is"} for i, o in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("outcomes", "lost", "part", "told"),
    [
        ((SAME, SAME), 0, 1, "2 of 2 runs that were drawn to be made again are the same, byte for byte"),
        ((SAME, NOT_RUN), 0, 1, "1 of 1 runs that were drawn to be made again are the same, byte for byte"),
        ((SAME, DIFFERS, NOT_RUN), 0, 1 / 2, "1 of 2 runs that were drawn to be made again are the same, byte for byte"),
        ((SAME,), 2, 1 / 3, "1 of 3 runs that were drawn to be made again are the same, byte for byte; 2 of them are not there, or do not count"),
        ((), 2, 0, "0 of 2 runs that were drawn to be made again are the same, byte for byte; 2 of them are not there, or do not count"),
        ((NOT_RUN,), 0, 0, "no run of the sample was made again here; a teacher decides"),
    ],
)  # fmt: skip
def test_points_for_runs_made_again_are_in_proportion_to_what_was_drawn(outcomes, lost, part, told):
    """What could not be run costs nothing beside what could; what is not there is not the same. Students are not told which they are."""
    said, which, found = rerun_result(outcomes_of(*outcomes), [f"lost {i}" for i in range(lost)])
    assert (said, found) == ([told], part)
    assert len(which) == len(outcomes) + lost and all("r0" not in text and "lost 0" not in text for text in said)


def endless() -> None:
    while True:
        pass


def asleep() -> None:
    import time

    time.sleep(1000)


def struck() -> None:
    import faulthandler

    faulthandler.disable()  # pytest's would print a traceback into the test's log, as if something were wrong
    os.kill(os.getpid(), 11)


@pytest.mark.parametrize(
    ("work", "problem"),
    [
        (lambda: bytearray(1 << 31), "MiB of memory"), (endless, "more than 1 s"), (asleep, "more than 1 s"),
        (struck, "signal 11"), (lambda: os._exit(7), "status 7"),
        (lambda: Path("big").write_bytes(bytes(1 << 21)), "cannot be read"), (lambda: "x" * (8 << 20), "ended with"),
        (lambda: float("nan"), "ended with"),
    ],
)  # fmt: skip
def test_a_process_with_limits_ends(work, problem, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(limited, "SLOWER", 5)
    monkeypatch.setattr(limited, "END_BYTES", 1 << 20)
    with pytest.raises(Refused, match=problem):
        run_limited(work, seconds=1, memory_bytes=1 << 28, file_bytes=1 << 20)
    assert run_limited(lambda: {"a": [1, "ü"]}, seconds=1, memory_bytes=1 << 28, file_bytes=1 << 20) == {"a": [1, "ü"]}


@pytest.mark.parametrize(
    ("said", "counted", "equal"),
    [
        (1.5, 1.5 + 1e-12, True), (1, 1.0, True), (10**400, 10**400, True), (None, None, True), ("a", "a", True),
        (1.5, 1.6, False), (10**400, 1.5, False), (1.5, 10**400, False), (-(10**400), 10**400, False), (True, 1.5, False),
        (None, 1.5, False), ("1.5", 1.5, False), (1e308, -1e308, False), ([1.5], 1.5, False),
    ],
    ids=lambda value: str(value)[:12],
)  # fmt: skip
def test_where_numbers_differ(said, counted, equal):
    """An integer that no float holds is a number of no measurement."""
    assert list(differences({"a": said}, {"a": counted}, close=1e-8)) == ([] if equal else [("a", said, counted)])


# Submissions that are whole, and edited ones. The guests run once.


@pytest.mark.guest
def test_a_good_submission_gets_full_marks_and_is_not_graded_twice(good, rubric, tmp_path):
    done = bbrlab("grade", good, "--rubric", rubric, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "ada: 100 of 100 points" in done.stdout and "LOOK" not in done.stdout
    as_json = bbrlab("grade", good, "--rubric", rubric, "--out", tmp_path / "out", "--json")
    assert json.loads(as_json.stdout)["score"] == 100
    kept = tmp_path / "out" / "ada" / "grade.json"
    before = kept.stat().st_mtime_ns
    grade = graded(good, rubric, tmp_path / "out" / "ada")
    assert kept.stat().st_mtime_ns == before and grade["score"] == 100
    results = json.loads((tmp_path / "out" / "ada" / GRADESCOPE).read_text())
    assert results["score"] == 100 and sum(t["max_score"] for t in results["tests"]) == 100
    assert all(t["status"] == "passed" for t in results["tests"])


@pytest.mark.guest
@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (edit_samples, EDITED_SUMMARY),  # the hash fits, the summary does not
        (lambda run: (run / "samples.parquet").write_bytes((run / "samples.parquet").read_bytes() + b"x"), EDITED_SAMPLES),
        (lambda run: edit_json(run / "summary.json", jain_index=0.99), EDITED_SUMMARY),
        (lambda run: edit_json(run / "summary.json", seed=3), EDITED_SUMMARY),
        (lambda run: edit_json(run / "manifest.json", plan_sha256="0" * 64), EDITED_MANIFEST),
        (lambda run: edit_json(run / "manifest.json", kernel={"name": "mine", "release": "6.99", "build_id": "x", "key": "y"}), OTHER_KERNEL),
    ],
    ids=["samples and hash", "samples", "metric", "seed of the summary", "manifest", "kernel"],
)  # fmt: skip
def test_what_was_edited_is_found_and_named(edit, kind, good, rubric, tmp_path):
    submission = copied(good, tmp_path / "ada")
    edit(first_run(submission))
    grade = graded(submission, rubric, tmp_path / "out")
    assert kind in kinds(grade)
    assert (
        score_of(grade, "runs") == 10 and score_of(grade, "claim some") == 0
    )  # half of the runs, and not all of a claim's
    assert score_of(grade, "bdp_bytes") == 10
    results = (tmp_path / "out" / GRADESCOPE).read_text()
    assert "A teacher will look at this submission" in results
    assert f"<b>{kind}</b>" in (tmp_path / "out" / PAGE).read_text(encoding="utf-8")


@pytest.mark.guest
def test_a_run_that_is_missing_is_named_and_so_is_what_cannot_be_judged_without_it(good, rubric, tmp_path):
    submission = copied(good, tmp_path / "ada")
    seed = json.loads((first_run(submission) / "manifest.json").read_text())["seed"]
    shutil.rmtree(first_run(submission))
    said = words(grade := graded(submission, rubric, tmp_path / "out"))
    assert score_of(grade, "runs") == 10
    assert re.search(rf"no run with (\S+ \S+ and )?seed {seed}\"", said), said
    assert re.search(
        r"your runs give no right answer to compare with \(not judged: 1 of its \d runs missing, or not counted\)", said
    ), said


@pytest.mark.guest
def test_a_lower_seed_in_the_manifest_is_found(good, rubric, tmp_path):
    """One run handed in for two seeds."""
    submission = copied(good, tmp_path / "ada")
    first, second = sorted((submission / "results").iterdir())
    seed = json.loads((second / "manifest.json").read_text())["seed"]
    shutil.rmtree(second)
    shutil.copytree(first, second)
    for name in ("manifest.json", "summary.json"):
        edit_json(second / name, seed=seed)
    assert EDITED_MANIFEST in kinds(graded(submission, rubric, tmp_path / "out"))


@pytest.mark.guest
def test_a_run_made_again_shows_what_was_edited_with_all_care(good, tmp_path):
    """Samples, hash and summary agree with each other: only another run can tell. And one that was not edited is the same."""
    rubric = write_rubric(tmp_path, rerun=2, points=RUBRIC["points"] | {"rerun": 30})
    submission = copied(good, tmp_path / "ada")
    edited = first_run(submission)
    edit_samples(edited, column="srtt_us", factor=1.01)
    told = next(t for kind, t in graded(submission, rubric, tmp_path / "first")["flags"] if kind == EDITED_SUMMARY)
    assert "rtt_ms_mean" in told
    careful_summary(edited)
    grade = graded(submission, rubric, tmp_path / "out")
    assert grade["flags"] == [(EDITED_SAMPLES, f"results/{edited.name}: made again, samples.parquet has other values")]
    assert {r["name"]: r["outcome"] for r in grade["reruns"]} == {
        f"results/{run.name}": DIFFERS if run == edited else SAME for run in (submission / "results").iterdir()
    }
    assert score_of(grade, "rerun") == 15 and score_of(grade, "claim some") == 0  # one of two
    assert edited.name not in (tmp_path / "out" / GRADESCOPE).read_text()


def drawn_places(tmp_path: Path, runs: list[dict[str, object]], buffers: tuple[float, ...] = (1, 2, 4), **changes: object) -> list[tuple[float, int]]:  # fmt: skip
    """Of a figure with three buffers: the buffer and seed of each run that is drawn."""
    scenario = RUBRIC["scenario"] | {"sweep": {"network.buffer.bdp": [1, 2, 4]}}
    rubric = load_rubric(write_rubric(tmp_path, **{"scenario": scenario, "rerun": 3, "points": {"rerun": 1}, "claims": [], "questions": RUBRIC["questions"][:1]} | changes))  # fmt: skip
    own = personal(
        load_rubric(write_rubric(tmp_path, scenario=scenario, claims=[], questions=RUBRIC["questions"][:1])), "ada"
    )
    points = [next(p for p in own.assignment.points if p.scenario.network.buffer.bdp == b) for b in buffers]
    drawn = drawn_runs(rubric, own, points, runs, [])  # type: ignore[arg-type]
    assert len(drawn.runs) + len(drawn.lost) == min(6, rubric.rerun)
    return [(buffers[runs[i]["point"]], runs[i]["seed"]) for i in drawn.runs]  # type: ignore[index, misc]


def test_which_runs_are_made_again_hangs_on_salt_point_and_seed_only(tmp_path):
    """Whoever hands in again, in another order, with other content or without some, draws the same."""
    seeds = personal(load_rubric(write_rubric(tmp_path)), "ada").seeds
    every = [{"point": p, "seed": s, "wrong": [], "digest": f"{p}{s}"} for p in range(3) for s in seeds]
    first = drawn_places(tmp_path, every)
    assert len(first) == 3
    assert drawn_places(tmp_path, [run | {"digest": "other"} for run in every]) == first
    assert drawn_places(tmp_path, every[::-1]) == first
    other_order = (4, 1, 2)
    moved = [run | {"point": other_order.index((1, 2, 4)[run["point"]])} for run in every]
    assert drawn_places(tmp_path, moved, other_order) == first
    without = [run for run in every if ((1, 2, 4)[run["point"]], run["seed"]) != first[0]]
    assert drawn_places(tmp_path, without) == first[1:]
    wrong = [run | {"wrong": ["edited"] * (((1, 2, 4)[run["point"]], run["seed"]) == first[0])} for run in every]
    assert drawn_places(tmp_path, wrong) == first[1:]
    others = {tuple(drawn_places(tmp_path, every, salt=f"secret number {i} of theirs")) for i in range(9)}
    assert len(others) > 4, "another salt, another sample"
    free = {"network.buffer.bdp": {"low": 1, "high": 9}}
    assert len({tuple(drawn_places(tmp_path, every, order, free=free)) for order in ((1, 2, 4), (4, 2, 1), (2, 4, 1))}) <= 2  # fmt: skip


# A class.


@pytest.mark.guest
def test_a_class_is_graded_and_copied_runs_are_named(good, rubric, tmp_path):
    """ada's own; bob hands in ada's runs with his name; eve and carl hand in nothing that can be read."""
    room = tmp_path / "class"
    copied(good, room / "ada")
    answers = copied(good, room / "bob") / "answers.yaml"
    answers.write_text(answers.read_text().replace("student: ada", "student: bob"))
    (room / "eve.zip").write_bytes(b"PK")
    (room / "carl.rar").write_bytes(b"Rar!")
    (room / ".hidden").touch()
    done = bbrlab("grade", "--class", room, "--rubric", rubric, "--out", tmp_path / "out", "--cores", 2)
    assert done.returncode == 0, done.stderr
    rows = {r["student"]: r for r in csv.DictReader(io.StringIO((tmp_path / "out" / "class.csv").read_text()))}
    assert set(rows) == {"ada", "bob", "carl", "eve"}
    assert all(float(rows[name]["score"]) == 0 and rows[name]["flags"] == UNREADABLE for name in ("carl", "eve"))
    told = (tmp_path / "out" / "carl" / PAGE).read_text(encoding="utf-8")
    assert "carl.rar: is neither a folder nor an archive" in told
    assert float(rows["eve"]["score"]) == 0 and float(rows["bob"]["runs"]) == 0
    assert OTHERS_RUN in rows["bob"]["flags"] and COPIED in rows["bob"]["flags"]
    page_of_bob = (tmp_path / "out" / "bob" / PAGE).read_text(encoding="utf-8")
    assert "was asked of ada" in page_of_bob and "same values as a run of ada" in page_of_bob
    assert "ada" not in (tmp_path / "out" / "bob" / GRADESCOPE).read_text().replace(str(tmp_path), "")
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").glob("*/grade.json")}
    (tmp_path / "out" / "eve" / "grade.json").unlink()  # as if it had been stopped there
    again = bbrlab("grade", "--class", room, "--rubric", rubric, "--out", tmp_path / "out", "--cores", 1, "--json")
    assert again.returncode == 0 and "4 graded" in again.stderr
    assert [g["student"] for g in json.loads(again.stdout)] == ["ada", "bob", "carl", "eve"]
    assert {p: p.stat().st_mtime_ns for p in kept if p.parent.name != "eve"} == {
        p: t for p, t in kept.items() if p.parent.name != "eve"
    }


@pytest.mark.guest
def test_equal_runs_that_are_ones_own_are_not_called_copied(good, tmp_path):
    """The same conditions may give the same values with another seed: making the run again decides."""
    rubric = write_rubric(tmp_path, rerun=1, points=RUBRIC["points"] | {"rerun": 1})
    found = read_submission(good, rubric, "ada", tmp_path / "out")
    everybody = {"ada": found, "bob": found | {"runs": [found["runs"][0] | {"seed": 1}]}}
    others = class_matches("ada", everybody, load_rubric(rubric))
    assert others["equal"] == {"0": ["bob"]} and others["alike"] == {}
    grade = grade_submission(good, rubric, "ada", tmp_path / "out", others)
    assert [r["outcome"] for r in grade["reruns"]] == [SAME] and grade["reruns"][0]["run"] == 0
    assert grade["flags"] == []


def test_one_more_hand_in_grades_nobody_else_again(rubric):
    """Without a run in common, what is known of a student stays the same."""
    loaded = load_rubric(rubric)
    room: dict[str, Any] = {
        name: {"runs": [{"seed": seed, "digest": ""} for seed in drawn_seeds(loaded, name)]}
        for name in ("ada", "bob", "eve")
    }
    seed_of_bob = room["bob"]["runs"][0]
    room["ada"]["runs"].append(seed_of_bob)
    before = class_matches("ada", {name: room[name] for name in ("ada", "bob")}, loaded)
    assert before["seeds"] == {str(seed_of_bob["seed"]): "bob"}
    assert class_matches("ada", room, loaded) == before


def test_who_of_a_roster_handed_in_nothing_is_named(rubric, tmp_path):
    room, roster, out = tmp_path / "class", tmp_path / "roster.csv", tmp_path / "out"
    room.mkdir()
    (room / "eve.zip").write_bytes(b"PK")
    roster.write_text("Name,Username\nBob,bob\nEve,eve\nAda,ada\n")
    words = ("grade", "--class", room, "--rubric", rubric, "--out", out, "--roster", roster)
    done = bbrlab(*words)
    assert done.returncode == 0 and done.stdout.endswith("2 not handed in: bob, ada\n"), done.stderr
    rows = list(csv.DictReader(io.StringIO((out / "class.csv").read_text())))
    assert [(r["student"], r["score"], r["flags"]) for r in rows] == [
        ("eve", "0", UNREADABLE),
        ("bob", "", "not handed in"),
        ("ada", "", "not handed in"),
    ]
    page_of_class = (out / "class.html").read_text(encoding="utf-8")
    assert "1 submission; " in page_of_class and "; 2 not handed in</p>" in page_of_class
    assert "<td>bob</td>" in page_of_class and not (out / "bob").exists()
    (room / "poekim_103_eve.zip").write_bytes(b"PK")  # as Canvas calls it
    refused = bbrlab(*words)
    assert refused.returncode == 2 and not (out / "poekim_103_eve").exists()
    assert "roster.csv, column 'Username': has no student for poekim_103_eve.zip; name each" in refused.stderr


def test_a_class_needs_one_submission_for_each_id(tmp_path):
    with pytest.raises(UserError, match="has no submission"):
        submissions_in(tmp_path)
    (tmp_path / "ada").mkdir()
    (tmp_path / "bob.tar.gz").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "carl.7z").touch()
    (tmp_path / "eve.smith.rar").touch()
    assert list(submissions_in(tmp_path)) == ["ada", "bob", "carl", "eve.smith"]
    odd = tmp_path / f"{'x' * 101}.pdf"
    odd.touch()
    with pytest.raises(UserError, match=r"x\.pdf: 'x+' is no student's id, which is 1 to 100"):
        submissions_in(tmp_path)
    odd.unlink()
    (tmp_path / "class.csv").mkdir()
    with pytest.raises(
        UserError, match="class.csv: nobody can be called class.csv, which is the name of the class's table"
    ):
        submissions_in(tmp_path)
    (tmp_path / "class.csv").rmdir()
    (tmp_path / "ada.zip").touch()
    with pytest.raises(UserError, match="ada has another submission"):
        submissions_in(tmp_path)
    with pytest.raises(UserError, match="is not there"):
        submissions_in(tmp_path / "none")


@pytest.mark.parametrize("part", PARTS)
def test_a_submission_is_no_class(tmp_path, part):
    """Each of its files would be graded as a student."""
    for name in (part, "code"):
        (tmp_path / name).mkdir()
    with pytest.raises(UserError, match=rf"has {part}, so it looks like one submission, .*; leave --class out"):
        submissions_in(tmp_path)


def test_a_file_that_was_exchanged_is_seen_and_a_walk_ends(tmp_path, monkeypatch):
    """Same name, size, mode and time of change: found by the time that nobody can set."""
    from bbrlab_apps.grading import grade as module

    rubric = write_rubric(tmp_path)
    own, kernel = personal(load_rubric(rubric), "ada"), SimpleNamespace(key="k")
    work = tmp_path / "ada"
    for number in range(30):
        (work / f"{number:02}").mkdir(parents=True)
        (work / f"{number:02}" / "a.txt").write_text("one")
    file = work / "00" / "a.txt"

    def key() -> str:
        return module._key(work, rubric, own, kernel)

    before = key()
    assert key() == before
    status = file.stat()
    file.write_text("two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert key() != before
    looked: list[bytes] = []
    real = os.lstat
    monkeypatch.setattr(module, "ENTRIES_MAX", 10)
    monkeypatch.setattr(module.os, "lstat", lambda path: (looked.append(path), real(path))[1])
    key()
    assert 10 < len([path for path in looked if path.startswith(bytes(work))]) < 40


def test_a_grade_is_of_the_rows_of_the_file_that_its_rubric_names(tmp_path):
    """With other rows it is another assignment, though the rubric says the same."""
    from bbrlab_apps.grading import grade as module

    network = RUBRIC["scenario"]["network"] | {"changes": "delays.txt"}
    (tmp_path / "work").mkdir()
    keys = set()
    for row in ("1 50", "1 60"):
        (tmp_path / "delays.txt").write_text(f"{row}\n")
        rubric = write_rubric(tmp_path, scenario=RUBRIC["scenario"] | {"network": network})
        own = personal(load_rubric(rubric), "ada")
        keys.add(module._key(tmp_path / "work", rubric, own, SimpleNamespace(key="k")))
    assert len(keys) == 2


def test_the_command_says_what_it_needs(tmp_path):
    rubric = write_rubric(tmp_path)
    for argv, problem in (
        (("--rubric", rubric), "give a SUBMISSION, or --class"),
        ((tmp_path, "--class", tmp_path, "--rubric", rubric), "for each student, not both"),
        ((tmp_path / "none", "--rubric", rubric), "is not there"),
        ((tmp_path, "--rubric", rubric, "--student", "a/b"), "--student"),
        (("--class", tmp_path / "none", "--rubric", rubric), "is not there"),
        (("--class", tmp_path, "--rubric", rubric, "--student", "ada"), "--student is of one submission"),
        ((tmp_path, "--rubric", rubric, "--cores", 2), "--cores is of a class"),
        ((tmp_path, "--rubric", rubric, "--roster", rubric), "--roster is of a class"),
        ((tmp_path, "--rubric", rubric, "--id-column", "sid"), "--id-column is of a --roster"),
        (("--class", tmp_path, "--rubric", rubric, "--cores", -1), "Invalid value for '--cores'"),
    ):
        done = CliRunner().invoke(app, ["grade", *map(str, argv), "--out", str(tmp_path / "out")])
        assert done.exit_code and problem in f"{done.output}{done.exception}", done.output


# What is written.

MADE_UP = {
    "key": "k", "student": "<b>eve</b>", "assignment": "tiny", "title": "A & B", "parameters": {"rate_mbit": 8}, "seeds": [1],
    "score": 1.5, "of": 2.0, "flags": [(COPIED, "of <i>ada</i>")], "notes": ["<script>alert(1)</script>"],
    "items": [
        {"id": "=1+1", "title": "x", "score": 1.5, "of": 2.0, "told": ["'\"><img src=x onerror=y>"], "for_teacher": ["right: 7"]},
    ],
    "runs": [{"name": "results/<u>", "seed": -1, "counts": False, "told": []}],
    "reruns": [{"run": 0, "name": "<s>", "outcome": SAME, "kind": "", "told": "<em>"}], "pending": [], "late": "",
}  # fmt: skip


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.depth: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "img"):
            self.depth.append(tag)

    def handle_endtag(self, tag):
        assert self.depth.pop() == tag


def test_the_page_is_one_file_and_shows_foreign_text_as_text():
    text = page(MADE_UP)  # type: ignore[arg-type]
    seen = Tags()
    seen.feed(text)
    assert seen.depth == []
    assert not {"script", "img", "b", "i", "link", "iframe", "u", "s", "em"} - {"b"} & {t for t, _ in seen.tags}
    assert not any(key in ("href", "src") or key.startswith("on") for _, attributes in seen.tags for key in attributes)
    assert "&lt;b&gt;eve&lt;/b&gt;" in text and "&lt;script&gt;" in text and "A &amp; B" in text
    assert (
        'lang="en"' in text
        and "prefers-color-scheme: dark" in text
        and "max-width: 40rem" in text
        and "viewport" in text
    )
    assert "http://" not in text and "https://" not in text


def test_students_are_not_shown_right_answers_or_names(tmp_path):
    from bbrlab_apps.grading.report import gradescope

    text = json.dumps(gradescope(MADE_UP))  # type: ignore[arg-type]
    assert "right: 7" not in text and "ada" not in text and "1.5 of 2" in text


def test_a_table_of_a_class_has_no_formulas():
    rows = list(csv.reader(io.StringIO(class_table({"eve": MADE_UP, "@bob": MADE_UP | {"items": []}}))))  # type: ignore[dict-item]
    assert rows[0] == ["student", "score", "of", "'=1+1", "late", "pending", "flags"]
    assert rows[1] == ["'@bob", "1.5", "2", "", "", "", COPIED] and rows[2] == [
        "eve",
        "1.5",
        "2",
        "1.5",
        "",
        "",
        COPIED,
    ]
