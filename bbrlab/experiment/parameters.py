"""How a flow group's ``params`` reach the kernel: as module parameters, or as a parameter set of the group's own.

A module's parameters hold for the whole kernel, whichever flow asked for them. Some modules have sets of parameters beside
that: a line written to their parameter ``sets`` registers one more congestion control, by a name of its own
(kernels/bbr/tcp_bbr_sets.c). Groups with different sets share a bottleneck.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bbrlab.experiment.plan_types import ParameterSetPlan
from bbrlab.scenario.schema import Scenario


@dataclass(frozen=True)
class Parameters:
    """The parameters of all flow groups.

    Attributes:
        names: for each group the kernel's name of its CCA: an algorithm, or a parameter set.
    """

    names: list[str]
    sets: list[ParameterSetPlan]
    kernel_arguments: list[str]


def plan_parameters(scenario: Scenario, ccas: Mapping[str, str], modules: Mapping[str, str]) -> Parameters:
    """Each group's parameters; groups with the same CCA and the same parameters share a set.

    Args:
        modules: {the kernel's name of a CCA that may be had in parameter sets: the module that has it}.
    """
    names: list[str] = []
    sets: dict[tuple[str, str], ParameterSetPlan] = {}
    arguments: dict[str, list[str]] = {}
    for flow in scenario.flows:
        cca = ccas[flow.cca]
        values = {name: _word(value) for name, value in flow.params.items()}
        if cca in modules and values:
            key = cca, json.dumps(values, sort_keys=True)
            if key not in sets:
                ordered = {k: values[k] for k in sorted(values, key=lambda k: (k != "profile", k))}
                name = f"{cca}_set{len(sets) + 1}"
                sets[key] = {"module": modules[cca], "name": name, "base": cca, "values": ordered}
            names.append(sets[key]["name"])
        else:
            names.append(cca)
            if cca not in modules:
                arguments[cca] = [f"tcp_{cca}.{name}={value}" for name, value in values.items()]
    return Parameters(names, list(sets.values()), [a for cca in sorted(arguments) for a in arguments[cca]])


def _word(value: Any) -> str:
    return {True: "Y", False: "N"}[value] if isinstance(value, bool) else str(value)
