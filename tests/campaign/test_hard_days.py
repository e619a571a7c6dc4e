"""Hard days of a campaign and of its machine: kills, two at once, locales, time zones, a clock that jumps, files of the user's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bbrlab.base import paths
from tests.campaign import kills
from tests.campaign.kills import Campaign
from tests.cli.test_names import NAME
from tests.conftest import wait_for
from tests.guest.test_determinism import content, reference, run_in_process  # noqa: F401

DEFINITIONS = Path("/usr/share/i18n/locales")
# Letters that are not UTF-8, an i without a dot, a comma in numbers; half an hour or three quarters off, and the day after.
LOCALES = {
    "tr_TR.ISO-8859-9": "Asia/Kathmandu",
    "de_DE.UTF-8": "Pacific/Kiritimati",
    "ja_JP.EUC-JP": "America/St_Johns",
}


@pytest.fixture(scope="module")
def locales(tmp_path_factory) -> Path:
    """A folder with these locales, for LOCPATH."""
    if not DEFINITIONS.is_dir() or shutil.which("localedef") is None:
        pytest.skip("there are no definitions of locales here (Debian's package locales)")
    folder = tmp_path_factory.mktemp("locales")
    for name in LOCALES:
        language, charset = name.split(".")
        # Its warnings are of EUC-JP, which is no superset of ASCII to the letter.
        subprocess.run(
            ["localedef", "--no-archive", "-c", "-i", language, "-f", charset, folder / name], capture_output=True
        )
        assert (folder / name).is_dir()
    return folder


def of_locale(name: str, folder: Path) -> dict[str, str]:
    """The environment of a user with a locale and its time zone."""
    return {
        "LOCPATH": str(folder),
        "LC_ALL": name,
        "LANG": name,
        "TZ": LOCALES[name],
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }


def place_of(name: str, folder: Path) -> Path:
    """A folder with a name of several scripts; a plain one where Python takes no names of UTF-8."""
    return folder / ("plain" if name == "ja_JP.EUC-JP" else NAME)


@pytest.mark.guest
@pytest.mark.parametrize(
    "name",
    [
        "tr_TR.ISO-8859-9",
        *(pytest.param(name, marks=pytest.mark.slow) for name in [*LOCALES, "C"][1:]),
    ],
)
def test_a_run_in_another_locale_and_time_zone(reference, tmp_path, locales, name):  # noqa: F811
    """And in folders, of a user, with such names: the same bytes."""
    own = of_locale(name, locales) if name in LOCALES else {"LC_ALL": "C", "TZ": "XXX-25:61"}
    place = place_of(name, tmp_path)
    (place / "home").mkdir(parents=True)
    (place / "tmp").mkdir()
    out = run_in_process(place / "out", **own, HOME=str(place / "home"), USER="Ünal Ş", TMPDIR=str(place / "tmp"))
    assert content(out) == reference


def test_what_is_printed_in_another_locale(locales, tmp_path):
    """Pipes and files get UTF-8, in every locale the same; and nothing that a charset lacks ends in a traceback."""
    command = [sys.executable, "-m", "bbrlab.cli.main", "schema"]
    said = {
        name: subprocess.run(command, cwd=paths.ROOT, capture_output=True, env=os.environ | of_locale(name, locales))
        for name in LOCALES
    }
    assert {done.returncode for done in said.values()} == {0}
    assert len({done.stdout for done in said.values()}) == 1
    program = tmp_path / "program.py"
    program.write_text("from bbrlab.cli.streams import take_over; take_over(); print('Ünal ± Ş 実験 →')")
    for name in LOCALES:
        done = subprocess.run([sys.executable, program], capture_output=True, env=os.environ | of_locale(name, locales))
        assert done.stdout.decode() == "Ünal ± Ş 実験 →\n", done.stderr


def test_the_set_up_says_how_long_it_took_in_every_language(locales):
    """printf of a shell that speaks German takes 1.5 for no number."""
    lines = (paths.ROOT / "envs" / "setup.sh").read_text().splitlines()
    functions = "\n".join(line for line in lines if line.startswith(("set ", "export ", "step()", "done_()")))
    script = f"{functions}\nstep one; sleep 0.2; done_ all"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=os.environ | of_locale("de_DE.UTF-8", locales)
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[2:] == ["s", "all"]


JUMPS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    static unsigned calls;
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(which, now);
    if (which == CLOCK_REALTIME)
        now->tv_sec += (calls++ % 3 - 1L) * 86400 * 400;
    return status;
}
"""


@pytest.mark.guest
@pytest.mark.compiles
def test_a_run_while_the_clock_jumps(reference, tmp_path):  # noqa: F811
    """By 400 days, forward and back, at every look at it."""
    (tmp_path / "jumps.c").write_text(JUMPS)
    library = tmp_path / "jumps.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "jumps.c", "-ldl"], check=True)
    code = "import time; print(len({round(time.time() / 86400 / 400) for _ in range(9)}))"
    years = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=os.environ | {"LD_PRELOAD": str(library)}
    )
    assert int(years.stdout) == 3, "it jumps"
    assert content(run_in_process(tmp_path / "out", LD_PRELOAD=str(library))) == reference


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(7200)
def test_fifty_kills(tmp_path):
    outcome = kills.bench(tmp_path, 50, seed=22)
    assert outcome.kills == 50
    assert not outcome.wrong, outcome.wrong[:10]


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(3600)
def test_a_campaign_in_another_locale(tmp_path, locales):
    """Tables, verdicts and pages, too, in results and a home with such names."""
    here = Campaign(tmp_path / "here")
    here.finish()
    undisturbed = kills.content(here.results)
    for name in LOCALES:
        place = place_of(name, tmp_path)
        there = Campaign(place / name, environment=of_locale(name, locales) | {"HOME": str(place)})
        there.finish()
        assert kills.differences(there.results, undisturbed) == []


@pytest.mark.guest
@pytest.mark.slow
def test_two_campaigns_in_one_checkout(tmp_path):
    """The second one says so and ends; the first one does not notice."""
    first = Campaign(tmp_path)
    process = first.start()
    assert wait_for(lambda: not first.has_no_guest(), 120), "no guest was started"
    said = (tmp_path / "said").stat().st_size
    second = first.start()
    assert second.wait(120) == 1
    text = (tmp_path / "said").read_text()[said:]
    assert f"another campaign is writing to {first.results}; wait for it or end it" in text
    assert "Traceback" not in text
    assert process.wait(600) == 0
    assert kills.broken(first.results) == []
    assert len(list(first.results.rglob("summary.json"))) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scale": None}, "config.yaml: scale: must be a text"),
        ({"scale": "huge"}, "scale huge: no such scale"),
        pytest.param({"scales": []}, "config.yaml: scales: must be keys with values", marks=pytest.mark.slow),
        pytest.param({"kernel": "none"}, "none: no such kernel", marks=pytest.mark.slow),
        ({"figures": ["none"]}, "there is no figure or paper 'none'"),
        ({"sclae": "smoke"}, "config.yaml: sclae: unknown key; did you mean 'scale'?"),
        ("scale: [", ": not valid YAML: "),
        pytest.param("- 1\n", "config.yaml: ", marks=pytest.mark.slow),
        (b"\xff\xfe", "config.yaml: is not a UTF-8 text file"),
    ],
    ids=lambda v: str(v)[:20],
)
def test_a_campaign_with_a_broken_configuration(tmp_path, monkeypatch, change, words):
    """Snakemake reads this file, too: our words come first."""
    shutil.copytree(paths.CONFIG, tmp_path / "config")
    file = tmp_path / "config" / "config.yaml"
    if isinstance(change, dict):
        file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | change))
    else:
        file.write_bytes(change if isinstance(change, bytes) else change.encode())
    first = (
        f"from pathlib import Path\nfrom bbrlab.base import paths\npaths.CONFIG = Path({str(tmp_path / 'config')!r})\n"
    )
    (tmp_path / "Snakefile").write_text(first + (paths.ROOT / "Snakefile").read_text())
    (tmp_path / "rules").symlink_to(paths.ROOT / "rules")
    done = subprocess.run(
        ["snakemake", "-n", "--cores", "1", "--directory", tmp_path, "--snakefile", tmp_path / "Snakefile", "fig2"],
        cwd=paths.ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert words in said
    assert "Traceback" not in said
