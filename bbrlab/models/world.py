"""The parts of a scenario that each model describes, so that no model answers for others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bbrlab.base.errors import UserError
from bbrlab.scenario.frames import IP_VERSION, MTU_BYTES
from bbrlab.scenario.schema import Scenario


@dataclass(frozen=True)
class World:
    """What one model describes. No model describes what is not named here (loss, jitter, changes, marks, offloads ...)."""

    model: str
    # ccas, qdiscs, pacing, segmentation: values of the scenario's fields
    ccas: tuple[str, ...]
    qdiscs: tuple[str, ...] = ("fifo",)
    pacing: tuple[str, ...] = ("internal", "fq")
    segmentation: tuple[str, ...] = ("off", "nic")
    starts: bool = True  # whether flows may begin later than others

    def describes(self, scenario: Scenario) -> bool:
        """Whether the model describes a scenario."""
        return next(self._lacks(scenario), None) is None

    def check(self, scenario: Scenario) -> None:
        """UserError, naming the field and what the model has, if it lacks something of a scenario."""
        if problem := next(self._lacks(scenario), None):
            raise UserError(f"{scenario.name}: {self.model} does not describe {problem}")

    def _lacks(self, scenario: Scenario) -> Iterator[str]:
        network, hosts = scenario.network, scenario.hosts
        for i, flow in enumerate(scenario.flows):
            at = f"flows.{i}"
            if flow.cca not in self.ccas:
                yield f"{at}.cca {flow.cca}: it has {', '.join(self.ccas)}"
            if flow.start_s and not self.starts:
                yield f"{at}.start_s {flow.start_s:g}: its flows begin together"
            for field in ("stop_s", "bytes", "traffic"):
                if getattr(flow, field) is not None:
                    yield f"{at}.{field}: its flows send without end"
            if flow.direction != "forward":
                yield f"{at}.direction {flow.direction}: all its flows go forward"
            if flow.params:
                yield f"{at}.params ({', '.join(flow.params)}): it has the published versions, not a kernel's parameters"
        if network.qdisc.kind not in self.qdiscs:
            yield f"network.qdisc.kind {network.qdisc.kind}: it has {' and '.join(self.qdiscs)} (fifo: drop-tail)"
        if network.loss:
            yield f"network.loss {network.loss:g}: it loses only what the queue has no room for"
        if network.jitter:
            yield f"network.jitter ({network.jitter.kind}): its paths' delay is constant"
        if network.mtu_bytes != MTU_BYTES:
            yield f"network.mtu_bytes {network.mtu_bytes}: its packets have the usual size ({MTU_BYTES})"
        if network.ip_version != IP_VERSION:
            yield f"network.ip_version {network.ip_version}: its packets have the headers of IPv{IP_VERSION}"
        if network.data_path:
            yield "network.data_path: its paths' delay is constant, and no packet overtakes another"
        if network.reverse:
            yield f"network.reverse (rate_mbit {network.reverse.mean_mbit:g}): its ACKs never wait"
        if network.trace:
            yield "network.trace: its rate stays as it is"
        if network.policer:
            yield f"network.policer (place {network.policer.place}): it loses only what the queue has no room for"
        if network.links:
            yield f"network.links ({len(network.links)}): it has one bottleneck"
        if network.changes:
            yield "network.changes: its network stays as it is"
        if hosts.segmentation not in self.segmentation:
            yield f"hosts.segmentation {hosts.segmentation}: its packets enter the queue one by one (off, nic)"
        if hosts.receive_offload != "off":
            yield f"hosts.receive_offload {hosts.receive_offload}: its receivers take packets as they come"
        if hosts.ecn != "off":
            yield f"hosts.ecn {hosts.ecn}: it has no marks"
        if hosts.pacing not in self.pacing:
            yield f"hosts.pacing {hosts.pacing}: its flows pace as TCP itself does ({', '.join(self.pacing)})"
        for field in ("rmem_max_bytes", "wmem_max_bytes", "rmem_initial_bytes", "wmem_initial_bytes"):
            if getattr(hosts, field) is not None:
                yield f"hosts.{field}: its flows are never short of socket memory"
