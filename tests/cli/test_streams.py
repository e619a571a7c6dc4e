"""Standard input, output and error as they come: closed, full, without a reader, of another locale; and what a terminal obeys."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from bbrlab.base import paths
from bbrlab.base.console import Console
from bbrlab.base.tables import write_csv
from bbrlab.base.words import shown
from bbrlab.campaign.stages import PACKAGES
from bbrlab.cli.app import EXIT_FAILED

BBRLAB = f"{sys.executable} -m bbrlab.cli.main"
CLOSED = (">&-", "<&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full", ">&- 2>/dev/full")


def shell(command: str) -> subprocess.CompletedProcess[str]:
    scenario = paths.SCENARIOS / "tang" / "fig3.yaml"
    command = command.replace("{s}", str(scenario))
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=paths.ROOT, timeout=120)


def test_streams_that_are_closed_change_no_exit_code():
    """Nor do they bring a traceback; whoever can still be told is told."""
    ways = [("schema", closed) for closed in CLOSED] + [
        ("schema nothing", ">&- 2>&-"),
        ("--no-such-option", "<&- >&- 2>&-"),
    ]
    script = "".join(f"{BBRLAB} {command} {closed}; echo $? >&3\n" for command, closed in ways)
    done = shell(f"exec 3>&1\n{{ {script} }} >/dev/null")
    assert done.stdout.split() == ["0"] * len(CLOSED) + [str(EXIT_FAILED)] * 2
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["check {s}", "--help"])
def test_output_that_could_not_be_written_is_an_error(command):
    done = shell(f"{BBRLAB} {command} > /dev/full")
    assert done.returncode == EXIT_FAILED
    assert done.stderr.splitlines()[-1].startswith(
        "bbrlab: standard output could not be written (No space left on device)"
    )
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_ends_nothing():
    done = shell(f"{BBRLAB} schema | head -c 1; echo; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("{\n0\n", "")


def test_no_file_gets_the_number_of_a_closed_stream():
    """What is printed would stand in it."""
    code = "import os; from bbrlab.cli.streams import take_over; take_over(); print(os.open('/dev/zero', 0)); os.write(1, b'x')"
    done = shell(f'{sys.executable} -c "{code}" >&-')
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("locale", ["LC_ALL=POSIX PYTHONUTF8=0", "LC_ALL=C"])
def test_names_of_any_locale_are_readable(locale):
    done = shell(f"env {locale} {BBRLAB} check 'Cé😀.yaml'")
    assert done.returncode == EXIT_FAILED
    assert "bbrlab: Cé😀.yaml: cannot be read" in done.stderr


@pytest.mark.parametrize(
    ("text", "as_shown"),
    [
        ("plain, é 😀\n\ttab", "plain, é 😀\n\ttab"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("over\rwritten\x08\x7f\x9b", "over\\rwritten\\x08\\x7f\\x9b"),
        ("a\u202eb\u2066c\ufeff", "a\\u202eb\\u2066c\\ufeff"),
        ("C\udcc3\udca9", "Cé"),
        ("C\udcff", "C\\xff"),
        ("\ud83d\udc4d", "\\ud83d\\udc4d"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_as_its_code(text, as_shown):
    assert shown(text) == as_shown


@given(text=st.text(st.characters(exclude_categories=[])))
def test_nothing_that_is_shown_is_obeyed(text):
    told = shown(text)
    assert shown(told) == told and "\x1b" not in told
    told.encode("utf-8")


def test_a_name_on_the_console_has_neither_codes_nor_markup():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    evil = "[bold]x[/] [link=http://a]y[/link] :smile: \x1b]8;;http://b\x1b\\ \x1b[2J"
    table = Table(evil, box=None)
    table.add_row(evil)
    for thing in (evil, Text(evil, "red"), table):
        out.seek(0)
        out.truncate()
        console.print(thing, highlight=False)
        told = out.getvalue()
        for code in ("\x1b[2J", "\x1b]8", "\x1b\\"):
            assert code not in told
        assert "[bold]x[/]" in told and "[link=http://a]" in told and ":smile:" in told and "\\x1b[2J" in told


def test_a_terminal_gets_our_colours_and_no_codes_of_a_text():
    """The real streams: on a terminal, Rich's colours pass, and what a name has in it does not."""
    code = (
        "from bbrlab.cli.streams import take_over; take_over(); import typer; from rich.text import Text; "
        "from bbrlab.base.console import Console; typer.echo('\\x1b[5mname'); Console().print(Text('\\x1b[5mtext', 'red'))"
    )
    leader, terminal = os.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    environment.pop("NO_COLOR", None)
    subprocess.run(
        [sys.executable, "-c", code], stdout=terminal, stderr=terminal, cwd=paths.ROOT, env=environment, check=True
    )
    os.close(terminal)
    told = os.read(leader, 10_000).decode()
    os.close(leader)
    assert told.splitlines() == ["\\x1b[5mname", "\x1b[31m\\x1b[5mtext\x1b[0m"]


def test_there_is_one_console():
    """A file that has Rich's own console would print what others' files have in them as it is."""
    own = paths.ROOT / "bbrlab" / "base" / "console.py"
    files = [
        p
        for folder in (*PACKAGES, "snakemake_logger_plugin_bbrlab", "rules")
        for p in (paths.ROOT / folder).rglob("*.py")
    ]
    assert own in files
    for path in files:
        text = path.read_text(encoding="utf-8")
        imported = {
            f"{node.module}.{alias.name}"
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        forbidden = {"rich.console.Console", "rich.print", "rich.markup.escape", "rich.get_console"}
        assert path == own or not imported & forbidden, path
        assert "from_markup" not in text and "from_ansi" not in text, path


def test_no_text_of_a_table_is_a_formula(tmp_path):
    evil = ["=1+1", "-2+3+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\t=1", "-0.05 to 0.05", "cubic", None]
    table = pd.DataFrame({"=name": evil, "number": range(-4, 4)})
    write_csv(table, tmp_path / "t.csv")
    found = pd.read_csv(tmp_path / "t.csv")
    assert list(found) == ["'=name", "number"] and list(found["number"]) == list(range(-4, 4))
    assert list(found["'=name"].fillna("")) == [
        "'=1+1",
        "'-2+3+cmd|' /C calc'!A0",
        "'-x",
        "'@SUM(A1)",
        "'\t=1",
        "-0.05 to 0.05",
        "cubic",
        "",
    ]
    written = {
        p.name
        for p in (p for name in PACKAGES for p in (paths.ROOT / name).rglob("*.py"))
        if ".to_csv(" in p.read_text(encoding="utf-8")
    }
    # Those of numbers alone: chunks of short flows, and a table of a model.
    assert written == {"tables.py", "chunks.py", "burst_tables.py"}
