"""What the tests share: small scenarios, runs that several tests look at, and a results folder that is not the user's."""

from __future__ import annotations

import copy
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.experiment.plan_types import Trace
from bbrlab.run.capture import NO_CAPTURE, Capture
from bbrlab.run.run import run_point
from bbrlab.scenario.load import assign, base_point
from bbrlab.scenario.messages import validate
from tests.finished import finished_campaign  # noqa: F401

# The same examples everywhere, however busy the machine is.
hypothesis.settings.register_profile("bbrlab", deadline=None, derandomize=True)
hypothesis.settings.load_profile("bbrlab")

USERS_RESULTS = paths.ROOT / "results"

# Of a campaign in a test: with more guests than the machine has cores each takes several times as long, and every worker of pytest may have one.
CORES = str(max(1, (os.cpu_count() or 1) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))))
State = dict[str, tuple[int, int]]


def state_of(folder: Path) -> State:
    """{path: (time of its last change in ns, size)} of everything in a folder; empty without the folder."""
    found = {}
    for parent, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = Path(parent, name)
            status = path.lstat()
            found[str(path.relative_to(folder))] = (status.st_mtime_ns, status.st_size)
    return found


def changed(before: State, after: State) -> list[str]:
    """Paths that came, went or changed."""
    return sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))


def campaign_runs(results: Path) -> bool:
    """Whether a campaign is writing to ``results`` (bbrlab/campaign/lock.py)."""
    try:
        with open(results / ".lock", "rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def pytest_configure(config: pytest.Config) -> None:
    """Give the session, its workers and what they start a results folder of their own."""
    if hasattr(config, "workerinput"):
        return  # a worker of xdist has its session's environment
    config.option.loadscopereorder = False  # of xdist: by the number of their tests; LONGEST goes by time
    os.environ["BBRLAB_RESULTS"] = tempfile.mkdtemp(prefix="bbrlab-tests-")
    os.environ["BBRLAB_KERNELS"] = os.environ["BBRLAB_RESULTS"] + "/kernels.yaml"  # not the user's own
    os.environ["BBRLAB_SHIPPED"] = (
        os.environ["BBRLAB_RESULTS"] + "/shipped"
    )  # there is none: pages show the session's own
    paths.SHIPPED = Path(os.environ["BBRLAB_SHIPPED"])
    config.stash[_SESSION] = (Path(os.environ["BBRLAB_RESULTS"]), state_of(USERS_RESULTS), campaign_runs(USERS_RESULTS))


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and paths that pages name start at the checkout, wherever pytest was started."""
    monkeypatch.chdir(paths.ROOT)


# Files that take most of a minute of CPU or more, by guests, compilers or Snakemake: the longest first, so that all workers end together.
LONGEST = (
    "campaign/test_workflow.py",
    "kernel/test_bbr.py",
    "campaign/test_stages.py",
    "kernel/test_own_cca.py",
    "models/test_burst.py",
    "grading/test_grading.py",
    "run/test_bad_days.py",
    "docs/test_docs.py",
    "guest/test_guest_fields.py",
    "campaign/test_hard_days.py",
    "campaign/test_cache.py",
    "archive/test_archive.py",
    "cli/test_interrupts.py",
    "shipping/test_ship_more.py",
    "shipping/test_ship.py",
    "claims/test_judge.py",
    "play/test_play_terminal.py",
    "results/test_shipped.py",
    "comparison/test_compare.py",
    "claims/test_wanted_seeds.py",
    "study/test_plot_command.py",
    "fuzz/test_fuzz.py",
    "guest/test_determinism.py",
    "workload/test_short_flows.py",
    "play/test_play.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; skip in the container's image what needs a compiler, which an image on top has."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))
    if not paths.IMAGE.exists() or shutil.which("gcc"):
        return
    for item in items:
        if item.get_closest_marker("compiles"):
            item.add_marker(pytest.mark.skip(reason="the image has no compiler and no kernel source"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session if the checkout's own results changed, unless a campaign of the user's may have done it."""
    if _SESSION not in session.config.stash:
        return
    _, before, campaign = session.config.stash[_SESSION]
    touched = changed(before, state_of(USERS_RESULTS))
    if touched and not campaign and not campaign_runs(USERS_RESULTS):
        print(f"\nERROR: the tests changed {USERS_RESULTS}: {', '.join(touched[:5])} ({len(touched)} in all)")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the session's results."""
    if _SESSION in config.stash:
        shutil.rmtree(config.stash[_SESSION][0], ignore_errors=True)


_SESSION = pytest.StashKey[tuple[Path, State, bool]]()

BASE: dict[str, Any] = {
    "name": "test",
    "network": {"rate_mbit": 10, "rtt_ms": 40, "buffer": {"bdp": 2}},
    "flows": [{"cca": "cubic"}],
    "duration_s": 10,
    "window_s": [5, 10],
}


def scenario_dict(**changes: Any) -> dict[str, Any]:
    """BASE with {dotted path, "__" for the dots: value} put in."""
    content = copy.deepcopy(BASE)
    for path, value in changes.items():
        assign(content, path.replace("__", "."), value, "test")
    return content


class Result:
    """A finished run."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.summary = json.loads((folder / "summary.json").read_text())
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.log = (folder / "guest.log").read_text()

    @property
    def samples(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "samples.parquet")

    @property
    def acks(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "acks.parquet")

    def check(self, name: str) -> dict[str, Any]:
        return next(c for c in self.summary["checks"] if c["name"] == name)

    @property
    def failed(self) -> list[str]:
        return [c["name"] for c in self.summary["checks"] if c["ok"] is False]


def processes_of(marker: str) -> list[int]:
    """Live processes (zombies apart) whose command line or working directory has ``marker``."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_text() + os.readlink(entry / "cwd")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if marker in text and state != "Z":
            found.append(int(entry.name))
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Whether ``condition()`` comes true within that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


@pytest.fixture(scope="session")
def run_scenario(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Result]:
    """Run a scenario given as scenario_dict() changes; equal requests are run once in a session."""
    done: dict[str, Result] = {}

    def go(
        *,
        seed: int = 1,
        tamper: Callable[[dict[str, Any]], None] | None = None,
        trace: Trace = "",
        capture: Capture = NO_CAPTURE,
        kernel_name: str | None = None,
        **changes: Any,
    ) -> Result:
        key = json.dumps([seed, trace, capture.places, capture.snaplen, kernel_name, changes], sort_keys=True)
        if tamper is None and key in done:
            return done[key]
        point = base_point(validate(scenario_dict(**changes), "test", folder=Path.cwd()))
        folder = tmp_path_factory.mktemp("run")
        run_point(point, seed, folder, tamper=tamper, trace=trace, capture=capture, kernel_name=kernel_name)
        result = Result(folder)
        if tamper is None:
            done[key] = result
        return result

    return go
