"""What a scale of config/config.yaml makes of a scenario."""

from __future__ import annotations

from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.scenario.messages import validate
from bbrlab.scenario.schema import Override, Scenario


def at_scale(scenario: Scenario, name: str, path: Path) -> Scenario | None:
    """The scenario at a scale, with its labels and trials as they were; None if the scale leaves it out.

    Raises:
        UserError: if the scenario has not what the scale changes, or would not be valid.
    """
    override = scenario.scales.get(name, Override())
    if override.skip:
        if idle := sorted(override.model_fields_set - {"skip"}):
            raise UserError(
                f"{path}: scales.{name}.{idle[0]} would have no effect: skip leaves the figure out (leave out either)"
            )
        return None
    if not override.model_fields_set - {"trials"}:
        return scenario
    content = scenario.model_dump(exclude_unset=True)
    for key in ("duration_s", "window_s"):
        if getattr(override, key) is not None:
            content[key] = getattr(override, key)
    for key in ("sweep", "cases"):
        wrong = [k for k in getattr(override, key) or () if k not in getattr(scenario, key)]
        if wrong:
            raise UserError(f"{path}: scales.{name}.{key}: '{wrong[0]}' is not in the scenario's {key}")
    if override.sweep is not None:
        content["sweep"] = {k: override.sweep.get(k, v) for k, v in scenario.sweep.items()}
    if override.cases is not None:
        content["cases"] = {k: v for k, v in scenario.cases.items() if k in override.cases}
    return validate(content, f"{path} (at scale {name})", folder=path.parent)
