"""What the hooks and modules must not do: change other algorithms, leak, trip over odd connections or counters."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

from bbrlab.base import paths
from bbrlab.kernel.build import build_kernel
from bbrlab.kernel.built import get_kernel

pytestmark = pytest.mark.guest

MIX = [{"cca": "bbr1", "count": 2}, {"cca": "cubic"}, {"cca": "reno", "start_s": 2, "stop_s": 8}, {"cca": "dctcp"}]


@pytest.fixture(scope="module")
def mainline():
    """The kernel without the hooks, built if need be."""
    return build_kernel("mainline-6.12", say=lambda text: None)


@pytest.mark.compiles
@pytest.mark.slow  # compiles a second kernel: minutes
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"network__loss": 0.005, "hosts__segmentation": "nic"},
        {"network__rate_mbit": 100, "network__buffer__bdp": 0.2, "hosts__pacing": "fq"},
    ],
    ids=["plain", "loss and large segments", "shallow buffer and fq"],
)
def test_hooks_change_nothing_else(mainline, run_scenario, changes):
    """BBRv1, CUBIC, Reno and DCTCP give the same bytes with and without the hooks (and in another kernel binary)."""
    lab = run_scenario(flows=MIX, **changes)
    plain = run_scenario(flows=MIX, kernel_name=mainline.name, **changes)
    assert lab.manifest["kernel"]["build_id"] != plain.manifest["kernel"]["build_id"]
    assert (lab.folder / "samples.parquet").read_bytes() == (plain.folder / "samples.parquet").read_bytes()


def selftest(name, folder, kernel=None):
    """What a program of kernels/selftest prints in a bare guest (of the default kernel)."""
    built = kernel or get_kernel()
    argv = [built.image, "mem=256M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "time-travel=inf-cpu",
            f"init={paths.KERNELS / 'selftest' / 'init'}", "con=null", "con0=null,fd:1", "quiet", f"selftest={name}",
            f"uml_dir={folder}/"]  # fmt: skip
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    assert "selftest end" in done.stdout, done.stdout[-2000:]
    assert "WARNING" not in done.stdout
    return done.stdout


@pytest.mark.slow
def test_thousands_of_connections_leave_nothing(tmp_path):
    """Opened, used, switched to another CCA on the way, aborted, refused: no panic, no socket and no memory left."""
    output = selftest("connections", tmp_path)
    rows = re.findall(r"selftest measured (\w+) (\d+) (\d+) (\d+) (\d+)", output)
    assert {row[0] for row in rows} >= {"bbr", "bbr2", "bbr3", "cubic"}
    for cca, *numbers in rows:
        sockets_before, slab_before, sockets_after, slab_after = map(int, numbers)
        assert sockets_after <= sockets_before, cca
        assert slab_after - slab_before < 200, cca  # kB, for a thousand connections


def test_receivers_echo_marks(tmp_path):
    """A socket with bbr2 or bbr3, which ask for no ECT themselves, tells its peer of marks as one with CUBIC does."""
    echoed = dict(re.findall(r"selftest echoed (\w+) (\d+)", selftest("ecn", tmp_path)))
    assert set(echoed) == {"cubic", "bbr2", "bbr3"}
    assert all(int(marks) > 0 for marks in echoed.values()), echoed


@pytest.mark.parametrize("cca", [pytest.param("bbr2", marks=pytest.mark.slow), "bbr3"])
def test_counters_may_wrap(run_scenario, cca):
    """With the counts of delivered and lost packets some thousand below 2^32, nothing changes."""
    shallow = {"network__buffer__bdp": 0.5, "network__rate_mbit": 40, "network__loss": 0.001, "trace": "acks"}
    normal = run_scenario(flows=[{"cca": cca}], **shallow)
    wrapping = run_scenario(flows=[{"cca": cca, "params": {"counters_start": 2**32 - 5000}}], **shallow)
    delivered = wrapping.acks["delivered"].to_numpy(dtype="i8")
    assert (np.diff(delivered) < -(2**31)).any()
    same = [c for c in normal.acks.columns if c not in ("delivered", "lost")]
    assert normal.acks[same].equals(wrapping.acks[same])
    assert normal.acks["lost"].iloc[-1] > 0
