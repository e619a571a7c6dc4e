"""A run of somebody else, shown: whatever its files say is text of the page, or one message says what is wrong with them."""

from __future__ import annotations

import copy
import json
import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bbrlab.base.errors import UserError
from bbrlab_apps.site import html, run_page
from bbrlab_apps.site.run_page import write_run_page
from tests.show.test_site import run_with_markup

EVIL = "\"><img src=x onerror=alert(1)>'</script><script>alert(2)</script>{{ 7 * 7 }}$(touch x)\x1b[2J\u202e\ud800\0"
RAW = ("<img src=x", "</script><script>alert(2)", "\x1b", "\u202e", "\0")
VALUES = (
    EVIL, [EVIL], {EVIL: EVIL}, "", "1", "a/b", "../../x", -1, 0, 1, 0.5, True, False, None, [], {}, [[[]]], [1], [2, 1], {"case": [1]},
    1e308, -1e308, 1e-320, 10**400, 2**63, float("nan"), float("inf"),
)  # fmt: skip
COLUMNS = run_page._COLUMNS
EXAMPLES = 250  # of each kind


def places(content: Any, place: tuple = ()) -> Iterator[tuple]:
    """Where something can be changed, inside first."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, inner in items:
        yield from places(inner, (*place, key))
    if place:
        yield place


def changed(content: Any, place: tuple, value: Any) -> Any:
    content = copy.deepcopy(content)
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return content


def tried(folder: Path) -> str:
    """The page of a folder, or the message that refuses it. Whatever either says, it does nothing."""
    out = folder / "run.html"
    out.unlink(missing_ok=True)
    try:
        write_run_page(folder, out)
    except UserError as error:
        assert str(folder) in str(error) and len(str(error)) < 2000 and not out.exists()
        return str(error)
    page = out.read_text(encoding="utf-8")
    assert not [raw for raw in RAW if raw in page]
    return page


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    found = run_with_markup(tmp_path_factory.mktemp("strangers") / "run")
    samples = pd.read_parquet(found / "samples.parquet")
    more = {column: 1 + samples.index % 3 for column in COLUMNS if column not in samples}
    samples.assign(**more).to_parquet(found / "samples.parquet")
    return found


@pytest.mark.parametrize("name", ["summary.json", "manifest.json"])
def test_every_value_of_a_file_may_be_anything(folder, name):
    path = folder / name
    whole = path.read_text()
    content, rng = json.loads(whole), random.Random(1)
    try:
        for place in rng.sample(all_of := list(places(content)), min(EXAMPLES, len(all_of))):
            path.write_text(json.dumps(changed(content, place, rng.choice(VALUES))))
            tried(folder)
            path.write_text(json.dumps(changed(content, place, EVIL)))
            tried(folder)
    finally:
        path.write_text(whole)


@pytest.mark.parametrize("number", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_every_column_of_the_samples_may_be_anything(folder, number):
    path = folder / "samples.parquet"
    whole, rng = pd.read_parquet(path).iloc[::20].reset_index(drop=True), random.Random(1)
    before = path.read_bytes()
    strange = (-1, -1.5, 0.5, 7, 1e9, 1e18, 1e300, float("nan"), float("inf"), True, 1j, "x", None)
    try:
        for column in COLUMNS:
            for value in rng.sample(strange, number):
                one = whole[column].astype(object)
                one.iloc[rng.randrange(len(one))] = value
                for values in ([value] * len(whole), one if isinstance(value, int | float) else [value] * len(whole)):
                    try:
                        whole.assign(**{column: pd.Series(list(values)).infer_objects()}).to_parquet(path)
                    except (TypeError, ValueError, NotImplementedError):  # nothing that a file can hold
                        continue
                    tried(folder)
            whole.drop(columns=column).to_parquet(path)
            assert (f"has no column {column}" in tried(folder)) == (column in run_page._NEEDED)
        for rows in (0, 1, 2):
            whole.head(rows).to_parquet(path)
            tried(folder)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("seed", "<img src=x onerror=alert(1)>", "seed: "),
        ("virtual_s", "3", "virtual_s: "),
        ("virtual_s", 0, "virtual_s: "),
        ("window_s", [1], "window_s: "),
        ("window_s", "from 1 to 2", "window_s: "),
        ("checks.0.ok", "yes", "checks.0.ok: "),
        ("groups.0.cca", ["cubic"], "groups.0.cca: "),
        ("groups.0.goodput_mbit", "1", "groups.0.goodput_mbit: must be a number or null"),
        ("groups.0.goodput_mbit", 10**400, "groups.0.goodput_mbit: must be a number that can be"),
        ("bottleneck.buffer_bytes", 1.5, "bottleneck.buffer_bytes: "),
        ("kernel.release", 6, "kernel.release: "),
        ("values.x", float("nan"), "values.x: must be a number that can be"),
    ],
)
def test_a_summary_is_read_by_type(folder, field, value, words):
    path = folder / "summary.json"
    whole = path.read_text()
    place = tuple(int(part) if part.isdigit() else part for part in field.split("."))
    path.write_text(json.dumps(changed(json.loads(whole), place, value)))
    try:
        assert tried(folder).startswith(f"{path}: {words}")
    finally:
        path.write_text(whole)


def test_a_file_that_is_nested_deeply_is_damaged(folder):
    path = folder / "summary.json"
    whole = path.read_text()
    path.write_text("[" * 100_000)
    try:
        assert "is damaged" in tried(folder)
    finally:
        path.write_text(whole)


def test_the_command_to_copy_is_one_command(folder):
    path = folder / "manifest.json"
    whole = path.read_text()
    evil = {"network.qdisc.kind": "fifo; touch x", "$(touch x)": "`touch x`"}
    path.write_text(json.dumps(json.loads(whole) | {"values": evil}))
    try:
        commands = re.findall(r"<code>(bbrlab run [^<]*)</code>", tried(folder))
        assert all(shlex.split(command)[0] == "bbrlab" and "touch" not in command for command in commands)
    finally:
        path.write_text(whole)


def test_the_page_is_text_unless_it_says_so():
    """Templates escape by themselves: what is put into one and forgotten is still text."""
    assert html._environment().autoescape is True
    templates = list((Path(html.__file__).parent / "templates").glob("*.html"))
    assert len(templates) > 2
    for template in templates:
        assert "safe" not in re.findall(r"\|\s*(\w+)", template.read_text(encoding="utf-8")), template.name
