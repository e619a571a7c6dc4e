"""A Slurm of one's own: munged, slurmctld and slurmd on free ports, in one folder, for as long as a test runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bbrlab.base import paths
from tests.conftest import wait_for

PACKAGES = paths.ROOT / "envs" / "slurm-packages.txt"
PLUGIN = paths.ROOT / "envs" / "slurm.txt"
MEMORY_MB = 6000  # of its node, which it only counts

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
# Without systemd and control groups; sites have proctrack/cgroup and task/cgroup.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
MinJobAge=300
KillWait=5
MaxJobCount={jobs}
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str:
    """Why there can be no such Slurm here; empty if there can."""
    if os.geteuid() != 0:
        return "needs root: slurmd starts jobs for users"
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed; apt-get install {' '.join(_packages())}"
    try:
        import snakemake_executor_plugin_slurm  # noqa: F401
    except ImportError:
        return f"no snakemake-executor-plugin-slurm; .venv/bin/pip install --no-deps --require-hashes -r {PLUGIN}"
    return ""


def _packages() -> list[str]:
    lines = PACKAGES.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Slurm:
    """One controller and one node of it, on this machine.

    Attributes:
        folder: all of it: configuration, state, logs.
        environment: for programs that are to use it.
    """

    def __init__(self, folder: Path, cpus: int, jobs: int):
        self.folder = folder
        self.host = socket.gethostname().split(".")[0]
        self.conf = folder / "slurm.conf"
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(self.conf),
            "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        for name in ("munge", "state", "spool", "bin"):
            (folder / name).mkdir(mode=0o700)
        self.conf.write_text(
            CONF.format(
                host=self.host, folder=folder, controller=free_port(), node=free_port(), cpus=cpus, memory=MEMORY_MB, jobs=jobs
            )
        )  # fmt: skip
        # The plugin's step drops SLURM_CONF, and this configuration is not where srun looks without it.
        srun = folder / "bin" / "srun"
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={self.conf} exec {shutil.which("srun")} "$@"\n')
        srun.chmod(0o755)

    def start(self) -> None:
        """Start the daemons and wait for the node."""
        munge = self.folder / "munge"
        key = munge / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        # As root munged wants folders of root's; --force lets it have one below /tmp.
        subprocess.run(
            ["munged", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket", f"--seed-file={munge}/seed",
             f"--pid-file={self.folder}/munged.pid", f"--log-file={munge}/log", "--num-threads=2"],
            check=True, capture_output=True,
        )  # fmt: skip
        self.start_controller()
        subprocess.run(["slurmd", "-f", str(self.conf)], check=True, capture_output=True)
        assert wait_for(lambda: self.node_is("idle"), 60), (self.folder / "slurmctld.log").read_text()[-2000:]

    def start_controller(self) -> None:
        """Start slurmctld alone."""
        subprocess.run(["slurmctld", "-f", str(self.conf)], check=True, capture_output=True)

    def end(self, name: str) -> None:
        """End one of the daemons by its own process number."""
        file = self.folder / f"{name}.pid"
        with contextlib.suppress(OSError, ValueError):
            number = int(file.read_text())
            os.kill(number, signal.SIGTERM)
            if not wait_for(lambda: not Path(f"/proc/{number}").exists(), 20):
                os.kill(number, signal.SIGKILL)

    def stop(self) -> None:
        """Cancel all jobs and end the daemons."""
        self.run("scancel", "--full", *[row.split()[0] for row in self.jobs()])
        wait_for(lambda: not [row for row in self.jobs() if row.split()[1] in ("RUNNING", "COMPLETING")], 30)
        for name in ("slurmd", "slurmctld", "munged"):
            self.end(name)

    def run(self, *argv: str, **options) -> subprocess.CompletedProcess[str]:
        """Run a program that uses it."""
        return subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=120, **options)

    def node_is(self, state: str) -> bool:
        """Whether its node is in a state, as sinfo names it."""
        return self.run("sinfo", "--noheader", "--Node", "--format=%T").stdout.strip() == state

    def jobs(self, state: str = "all") -> list[str]:
        """ "NUMBER STATE MEMORY TIME COMMENT" of jobs, of one state or all that it remembers."""
        rows = self.run("squeue", "--noheader", f"--states={state}", "--format=%i %T %m %l %k").stdout.splitlines()
        return [row.strip() for row in rows]


@contextlib.contextmanager
def slurm(folder: Path, cpus: int = 2, jobs: int = 1000) -> Iterator[Slurm]:
    """A running Slurm in ``folder``, gone at the end of the block.

    Args:
        folder: a short path, for munge's socket stands in it.
        cpus: of its node.
        jobs: so many may be in its queue (MaxJobCount).
    """
    made = Slurm(folder, cpus, jobs)
    try:
        made.start()
        yield made
    finally:
        made.stop()
