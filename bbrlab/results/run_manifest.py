"""What a run's page reads of its manifest.json."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from bbrlab.base.strict import NonNegative, Positive
from bbrlab.scenario.link_trace import shipped_trace
from bbrlab.scenario.schema import Name, Network, Qdisc, RttMs, RttValue


class _Part(BaseModel):
    """Keys that the page does not read may be there: another version may have written them."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


class RunNetwork(Network):
    """The path of a run; all that the page reads of it must be there. No file that it names is opened: the run may be somebody else's,
    and the file another one by now."""

    model_config = ConfigDict(extra="ignore")
    qdisc: Qdisc = Field()

    @field_validator("trace")
    @classmethod
    def _is_a_trace(cls, trace: str | None, info: ValidationInfo) -> str | None:
        """One that comes with the package, by its place here; another one as it stands."""
        here = None if trace is None else shipped_trace(trace)
        return trace if here is None else str(here)

    @property
    def rate_is_known(self) -> bool:
        """Whether it can be told which rate the bottleneck had when: not if a file says so that only who made the run has."""
        return self.trace is None or shipped_trace(self.trace) is not None


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
