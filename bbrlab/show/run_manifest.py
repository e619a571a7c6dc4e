"""What a run's page reads of its manifest.json: there, and of the right kind, or one message says what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bbrlab.base import files
from bbrlab.base.strict import NonNegative, Positive
from bbrlab.results.schema import RUN_AGAIN, of_another_version
from bbrlab.scenario.messages import explain_error
from bbrlab.scenario.schema import Name, Network, Qdisc, RttMs, RttValue


class _Part(BaseModel):
    """Keys that the page does not read may be there: another version may have written them."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


class RunNetwork(Network):
    """The path of a run; all that the page reads of it must be there."""

    model_config = ConfigDict(extra="ignore")
    qdisc: Qdisc = Field()


class RunFlow(_Part):
    """A flow group of a run. Its algorithm may be somebody's own, whose source is not here."""

    cca: str
    count: Annotated[int, Field(ge=1)]
    rtt_ms: RttValue | None = None
    rtts_ms: list[RttMs] | None = None


class RunScenario(_Part):
    """The scenario of a run."""

    paper: Name
    name: Name
    duration_s: Positive
    window_s: Annotated[list[NonNegative], Field(min_length=2, max_length=2)]
    sample_hz: Positive
    flows: Annotated[list[RunFlow], Field(min_length=1)]
    network: RunNetwork


class RunManifest(_Part):
    """manifest.json of a run, as far as its page reads it."""

    values: dict[str, Any]
    fingerprint: str
    scenario: RunScenario
    source: dict[str, Any] = {}


def read_run_manifest(path: Path) -> tuple[dict[str, Any], RunManifest]:
    """The manifest.json of a run, as it is, and what its page reads of it.

    Raises:
        UserError: naming the file, and the first field that is missing or not as it must be.
    """
    content = files.read_json(path, RUN_AGAIN)
    if not isinstance(content, dict):
        raise of_another_version(path, "holds no keys with values", RUN_AGAIN)
    try:
        return content, RunManifest.model_validate(content)
    except ValidationError as error:
        first = min(error.errors(), key=lambda one: (one["type"] != "missing", -len(one["loc"])))  # the farthest inside
        if first["type"] == "missing":
            place = ".".join(part for part in first["loc"] if isinstance(part, str))
            raise of_another_version(path, f"has no '{place}'", RUN_AGAIN) from None
        problem = explain_error("", first, content).removeprefix(": ")
        raise of_another_version(path, problem, RUN_AGAIN) from None
