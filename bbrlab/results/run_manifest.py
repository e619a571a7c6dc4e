"""What a run's page reads of its manifest.json."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bbrlab.base.errors import UserError
from bbrlab.base.strict import NonNegative, Positive
from bbrlab.scenario.link_trace import existing_file, shipped_trace
from bbrlab.scenario.point import fingerprint_of
from bbrlab.scenario.schema import Name, Network, Qdisc, RttMs, RttValue

MORE_INSTANTS = 10  # of samples, than duration_s x sample_hz: its first and last, the window's ends, some to spare


class _Part(BaseModel):
    """Keys that the page does not read may be there: another version may have written them."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


class RunNetwork(Network):
    """The path of a run; all that the page reads of it must be there. A file that it names is read only if it is the one that was run
    (RunManifest): the run may be somebody else's, and the file another one by now."""

    model_config = ConfigDict(extra="ignore")
    qdisc: Qdisc = Field()
    _as_it_ran: bool = PrivateAttr(False)  # whether ``trace`` has the content that was run

    @field_validator("trace")
    @classmethod
    def _is_a_trace(cls, trace: str | None, info: ValidationInfo) -> str | None:
        """One that comes with the package, by its place here; another one as it stands."""
        here = None if trace is None else shipped_trace(trace)
        return trace if here is None else str(here)

    @property
    def rate_is_known(self) -> bool:
        """Whether it can be told which rate the bottleneck had when: not if a file says so that is not here as it was run."""
        return self.trace is None or shipped_trace(self.trace) is not None or self._as_it_ran


class RunTraffic(_Part):
    """Short flows of a run."""

    trace: str


class RunFlow(_Part):
    """A flow group of a run. Its algorithm may be somebody's own, whose source is not here."""

    cca: str
    count: Annotated[int, Field(ge=1, le=1000)]
    rtt_ms: RttValue | None = None
    rtts_ms: list[RttMs] | None = None
    traffic: RunTraffic | None = None


class RunScenario(_Part):
    """The scenario of a run."""

    paper: Name
    name: Name
    duration_s: Positive
    window_s: Annotated[list[NonNegative], Field(min_length=2, max_length=2)]
    sample_hz: Positive
    flows: Annotated[list[RunFlow], Field(min_length=1)]
    network: RunNetwork

    @property
    def most_samples(self) -> float:
        """How many rows samples.parquet has at most: at each instant, however late it is, one of each flow, or one without flows."""
        return (self.duration_s * self.sample_hz + MORE_INSTANTS) * max(1, sum(flow.count for flow in self.flows))

    @property
    def files(self) -> list[str]:
        """The files that it names."""
        traffic = [flow.traffic.trace for flow in self.flows if flow.traffic and flow.traffic.trace != "model"]
        return [*([self.network.trace] if self.network.trace else []), *traffic]


class RunManifest(_Part):
    """manifest.json of a run, as far as its page reads it."""

    values: dict[str, Any]
    fingerprint: str
    scenario: RunScenario
    source: dict[str, Any] = {}

    @model_validator(mode="wrap")
    @classmethod
    def _with_its_trace(cls, content: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """A trace that is here is read if all files of the run are plain ones with the content that its fingerprint is of."""
        manifest = handler(content)
        if not manifest.scenario.network.rate_is_known:
            try:
                sizes = [existing_file(name, Path.cwd(), "").stat().st_size for name in manifest.scenario.files]
                # reading a file of the kernel's, whose size is 0, may wait for ever
                if all(sizes) and fingerprint_of(content["scenario"]) == manifest.fingerprint:
                    manifest.scenario.network._as_it_ran = True
            except (ValueError, OSError, UserError):
                pass
        return manifest
