"""kill -9 of a campaign at random moments: resumed, it ends with the same bytes as one that nobody disturbed.

`python -m tests.campaign.kills 50` kills so many times; a slow test of tests/campaign/test_hard_days.py does. A campaign is killed, resumed, killed again, until it
is finished; then its results are compared with those of an undisturbed one, and the next begins. Either snakemake alone is killed, as the
system does that is short of memory, or everything that it has started, too, as a power cut does; it is resumed at once, or when all is quiet.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from bbrlab.base import files, paths
from tests.conftest import processes_of, wait_for

FIGURE = "tang/fig2"
TARGETS = ("fig2", "RESULTS/smoke/points.parquet", "RESULTS/smoke/scorecard.json")
OUR_TIME = {"wall_s", "wall"}  # fields that are of the wall clock
OF_THE_MACHINE = (
    "logs/",
    "plan/",
)  # below the results: what was printed, and what a campaign works out of this machine
NAME_FOLDERS = ("guest.log", "scorecard.txt", ".claims.txt")  # ends of names: these name folders, or how long it took
QUIET_S = 60


@dataclass
class Campaign:
    """A campaign at scale smoke in a folder of its own.

    Attributes:
        folder: has its results, what Snakemake keeps, and its guests' scratch folders.
        targets: what is asked for; RESULTS stands for its results folder.
    """

    folder: Path
    targets: tuple[str, ...] = TARGETS
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def start(self) -> subprocess.Popen[bytes]:
        """Start or resume it."""
        for name in ("tmp", "work"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        command = [
            "snakemake",
            "--snakefile",
            paths.ROOT / "Snakefile",
            "--directory",
            self.folder / "work",
            "--cores",
            "2",
        ]
        command += ["--config", "scale=smoke", f"figures=[{FIGURE}]", "--"]
        command += [target.replace("RESULTS", str(self.results)) for target in self.targets]
        environment = (
            os.environ | {"BBRLAB_RESULTS": str(self.results), "TMPDIR": str(self.folder / "tmp")} | self.environment
        )
        with open(self.folder / "said", "ab") as said:
            return subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True, env=environment)

    def finish(self) -> None:
        """Let it go to its end."""
        status = self.start().wait()
        assert status == 0, (self.folder / "said").read_text(errors="replace")[-3000:]

    def kill(self, process: subprocess.Popen[bytes], everything: bool) -> None:
        """End it as no program can prevent."""
        process.send_signal(signal.SIGKILL)
        if everything:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            for other in processes_of(f"{self.folder}/"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(other, signal.SIGKILL)
        process.wait()

    def has_no_guest(self) -> bool:
        """Whether no guest runs."""
        return not processes_of(f"{self.folder}/tmp/bbrlab-run-")

    def is_quiet(self) -> bool:
        """Whether nothing runs any more that it has started."""
        return not processes_of(f"{self.folder}/")


def broken(results: Path) -> list[str]:
    """What is there of results and is not whole."""
    found = []
    for path in results.rglob("summary.json"):
        try:
            json.loads(path.read_text())
            manifest = json.loads((path.parent / "manifest.json").read_text())
            for name, digest in manifest["outputs_sha256"].items():
                if files.sha256(path.parent / name) != digest:
                    found.append(f"{path.parent / name}: is not what the manifest says")
        except (OSError, ValueError) as error:
            found.append(f"{path.parent}: {error}")
    for path in results.rglob("[!.]*.parquet"):
        try:
            pd.read_parquet(path)
        except Exception as error:
            if (path.parent / "summary.json").exists() or "runs" not in path.parts:
                found.append(f"{path}: {error}")
    return found


def content(results: Path) -> dict[str, bytes]:
    """{file: its bytes, without what is of the wall clock}, of a folder of results, or of one run."""
    found = {}
    for path in sorted(results.rglob("*")):
        name = str(path.relative_to(results))
        if (
            not path.is_file()
            or name.startswith(OF_THE_MACHINE)
            or name.endswith(NAME_FOLDERS)
            or any(part.startswith(".") for part in path.relative_to(results).parts)
        ):
            continue
        data = path.read_bytes()
        if path.name in ("summary.json", "manifest.json"):
            data = json.dumps({k: v for k, v in json.loads(data).items() if k not in OUR_TIME}).encode()
        elif path.suffix in (".parquet", ".csv") and "wall_s" in (table := read(path)):
            data = table.drop(columns="wall_s").to_csv().encode()
        elif path.suffix == ".ipynb":
            data = json.dumps(without_times(json.loads(data))).encode()
        elif path.suffix == ".json":
            data = re.sub(rb'"(wall_\w+|core_minutes)": [\d.]+', b"", data)
        found[name] = data
    return found


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def without_times(notebook: dict) -> dict:
    """An executed notebook without when and how long each cell ran."""
    for part in (notebook, *notebook["cells"]):
        part["metadata"].pop("papermill", None)
        part["metadata"].pop("execution", None)
    return notebook


def differences(results: Path, reference: dict[str, bytes]) -> list[str]:
    """Names of files that are not as in the reference."""
    here = content(results)
    return sorted(name for name in here.keys() | reference if here.get(name) != reference.get(name))


@dataclass
class Outcome:
    """What a bench of kills came to."""

    kills: int = 0
    campaigns: int = 0
    moments_s: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def bench(
    folder: Path, kills: int, seed: int, targets: tuple[str, ...] = TARGETS, within_s: float | None = None
) -> Outcome:
    """Kill so many times, each within that time of a start (default: what an undisturbed campaign takes). Returns what came of it."""
    rng = random.Random(seed)
    undisturbed = Campaign(folder / "undisturbed", targets)
    begin = time.monotonic()
    undisturbed.finish()
    whole_s = time.monotonic() - begin
    reference = content(undisturbed.results)
    print(f"undisturbed: {whole_s:.0f} s, {len(reference)} files", flush=True)
    outcome = Outcome()
    while outcome.kills < kills:
        campaign = Campaign(folder / f"campaign-{outcome.campaigns}", targets)
        while True:
            last = outcome.kills >= kills
            process = campaign.start()
            moment_s = rng.uniform(0, within_s or whole_s)
            begin = time.monotonic()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(None if last else moment_s)
            if process.returncode is not None:
                if process.returncode:
                    outcome.wrong.append(
                        f"campaign {outcome.campaigns} ended with {process.returncode}: {(campaign.folder / 'said').read_text()[-2000:]}"
                    )
                break
            everything, at_once = rng.random() < 0.5, rng.random() < 0.5
            campaign.kill(process, everything)
            outcome.kills += 1
            outcome.moments_s.append(moment_s)
            if not at_once and not wait_for(campaign.has_no_guest, 20):
                outcome.wrong.append(f"kill {outcome.kills}: guests survive their campaign")
            outcome.wrong += [f"kill {outcome.kills}: {text}" for text in broken(campaign.results)]
            print(f"kill {outcome.kills} after {moment_s:.1f} s: {'all' if everything else 'snakemake'}", flush=True)
        others = differences(campaign.results, reference)
        outcome.wrong += [f"campaign {outcome.campaigns}: {name} is another" for name in others]
        print(f"campaign {outcome.campaigns}: {len(reference)} files, {len(others)} of them differ", flush=True)
        outcome.campaigns += 1
        wait_for(campaign.is_quiet, QUIET_S)
        shutil.rmtree(campaign.folder, ignore_errors=True)
    return outcome


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--all", action="store_true", help="the whole campaign with every page and the site, not one paper's"
    )
    parser.add_argument("--within-s", type=float, help="of a start; default: what an undisturbed campaign takes")
    options = parser.parse_args()
    targets = ("all",) if options.all else TARGETS
    with tempfile.TemporaryDirectory(prefix="bbrlab-kills-") as folder:
        outcome = bench(Path(folder), options.kills, options.seed, targets, options.within_s)
    print(
        f"{outcome.kills} kills after {min(outcome.moments_s):.1f} to {max(outcome.moments_s):.1f} s in {outcome.campaigns} campaigns; wrong: {len(outcome.wrong)}"
    )
    print("\n".join(outcome.wrong[:20]))
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
