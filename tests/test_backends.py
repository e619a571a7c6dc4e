"""Virtual time against real time: the same scenario in a QEMU machine (make test-slow)."""

from __future__ import annotations

import shutil

import pytest

from bbrlab import kernel
from bbrlab import run as runner
from bbrlab.errors import UserError
from bbrlab.guest import qemu
from bbrlab.scenario import base_point, validate
from tests.conftest import Result, scenario_dict

SPREAD = 0.08  # of the share between trials of a minute or two, at least


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.skipif(shutil.which(kernel.QEMU) is None, reason="needs QEMU (apt-get install qemu-system-x86)")
def test_real_time_agrees_with_virtual_time(run_scenario, tmp_path):
    """The same checks pass, with real time's tolerances; shares, utilisation and queue agree as trials do."""
    built = kernel.build("lab-6.12-qemu", say=lambda text: None)
    mix = {
        "flows": [{"cca": "bbr1"}, {"cca": "cubic"}],
        "hosts__segmentation": "nic",
        "network__rate_mbit": 10 if built.acceleration == "kvm" else 2,
        "network__buffer__bdp": 4,
        "duration_s": 120,
        "window_s": [40, 120],
    }
    virtual = [run_scenario(seed=seed, **mix).summary for seed in (1, 2, 3)]
    runner.run_point(base_point(validate(scenario_dict(**mix), "s")), 1, tmp_path, backend="qemu")
    real = Result(tmp_path)
    assert real.summary["backend"] == "qemu"
    assert real.failed == []
    shares = [v["groups"][0]["share_of_capacity"] for v in virtual]
    tolerance = 2 * max(SPREAD, max(shares) - min(shares))
    assert real.summary["groups"][0]["share_of_capacity"] == pytest.approx(sum(shares) / 3, abs=tolerance)
    for key, allowed in (("utilisation", 0.02), ("occupancy", 0.15)):
        mean = sum(v["bottleneck"][key] for v in virtual) / 3
        assert real.summary["bottleneck"][key] == pytest.approx(mean, abs=allowed)


def test_a_kernel_of_another_backend_is_refused(tmp_path):
    point = base_point(validate(scenario_dict(), "s"))
    with pytest.raises(UserError, match=r"kernel lab-6.12 is not for it; those that are: lab-6.12-qemu"):
        runner.run_point(point, 1, tmp_path, backend="qemu", kernel_name="lab-6.12")


def test_qemu_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install qemu-system-x86"):
        qemu.command(None, None)
