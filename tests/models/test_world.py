"""No model answers for a scenario that has what the model has not."""

from __future__ import annotations

import pytest

from bbrlab.base.errors import UserError
from bbrlab.models import burst_scenario, predict, ware
from bbrlab.scenario.messages import validate
from tests.conftest import scenario_dict

FLOWS = [{"cca": "bbr1", "count": 2}, {"cca": "cubic"}]
ASKED = {
    "ware": ware.scenario_share,
    "fluid": lambda scenario: predict.fluid_share(scenario, duration_s=0.2, step_ms=0.1),
    "burst": lambda scenario: burst_scenario.predict(scenario, seeds=1, duration_s=2),
}


def asked(model: str, **changes):
    return ASKED[model](validate(scenario_dict(**({"flows": FLOWS} | changes)), "s"))


@pytest.mark.parametrize("model", ASKED)
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"network__loss": 0.05}, r"network\.loss 0\.05"),
        ({"network__jitter": {"kind": "slotted", "ms": 1}}, r"network\.jitter \(slotted\)"),
        ({"network__reverse": {"rate_mbit": 1, "buffer": {"bdp": 1}}}, r"network\.reverse"),
        ({"network__trace": "leo"}, r"network\.trace"),
        ({"network__policer": {"rate_mbit": 5, "burst_bytes": 20_000}}, r"network\.policer"),
        ({"network__changes": [{"at_s": 1, "rate_mbit": 20}]}, r"network\.changes"),
        ({"network__qdisc": {"kind": "codel"}}, r"network\.qdisc\.kind codel"),
        ({"hosts": {"ecn": "on"}}, r"hosts\.ecn on"),
        ({"hosts": {"receive_offload": "gro"}}, r"hosts\.receive_offload gro"),
        ({"hosts": {"segmentation": "router"}}, r"hosts\.segmentation router"),
        ({"hosts": {"wmem_max_bytes": 65536}}, r"hosts\.wmem_max_bytes"),
        ({"flows": [FLOWS[0] | {"stop_s": 2}, FLOWS[1]]}, r"flows\.0\.stop_s"),
        ({"flows": [FLOWS[0], FLOWS[1] | {"bytes": 10**6}]}, r"flows\.1\.bytes"),
        ({"flows": [FLOWS[0], FLOWS[1] | {"direction": "reverse"}]}, r"flows\.1\.direction reverse"),
        ({"flows": [FLOWS[0], {"cca": "dctcp"}]}, r"flows\.1\.cca dctcp"),
    ],
)
def test_a_model_refuses_what_it_lacks(model, changes, told):
    with pytest.raises(UserError, match=rf"the {model if model != 'ware' else 'Ware'} model does not describe {told}"):
        asked(model, **changes)


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("ware", {}),
        ("ware", {"flows": [FLOWS[0], FLOWS[1] | {"start_s": 1}], "hosts": {"segmentation": "nic", "pacing": "fq"}}),
        ("fluid", {"network__qdisc": {"kind": "red"}, "hosts": {"pacing": "fq"}}),
        ("burst", {"flows": [FLOWS[0], FLOWS[1] | {"start_s": 1}]}),
    ],
)
def test_and_answers_for_what_it_has(model, changes):
    assert asked(model, **changes) is not None


@pytest.mark.parametrize(
    ("model", "changes", "told"),
    [
        ("fluid", {"flows": [FLOWS[0], FLOWS[1] | {"start_s": 1}]}, r"flows\.1\.start_s 1: its flows begin together"),
        ("burst", {"hosts": {"pacing": "fq"}}, r"hosts\.pacing fq"),
        ("ware", {"network__qdisc": {"kind": "red"}}, r"network\.qdisc\.kind red: it has fifo"),
        ("ware", {"flows": [FLOWS[0], {"cca": "bbr2"}]}, r"flows\.1\.cca bbr2"),
    ],
)
def test_each_by_its_own_world(model, changes, told):
    with pytest.raises(UserError, match=told):
        asked(model, **changes)
