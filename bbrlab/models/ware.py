"""The steady-state model of Ware, Mukerjee, Seshan, Sherry, "Modeling BBR's Interactions with Loss-Based Congestion
Control" (IMC 2019): N BBRv1 flows against any number of loss-based flows at one drop-tail bottleneck.

Equation numbers are the paper's. Symbols: c capacity (packets/s), l base RTT (s), q queue capacity (packets),
X = q / (c l), p the loss-based flows' aggregate share of link and queue at convergence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bbrlab.base.errors import UserError
from bbrlab.models.world import World
from bbrlab.scenario.schema import Network, Scenario

PACKET_BYTES = 1500  # the paper's packets
PROBE_RTT_PACKETS = 4  # BBRv1's window in ProbeRTT, per flow
PROBE_RTT_S = 0.2
PROBE_INTERVAL_S = 10.0
INFLIGHT_CAP_GAIN = 2.0
WORLD = World("the Ware model", ccas=("bbr1", "cubic", "reno"))
# Papers put the model beside BBRv2 and BBRv3, too.
ANY_BBR = World("the Ware model", ccas=("bbr1", "bbr2", "bbr3", "cubic", "reno"))
Array = NDArray[np.float64]


def loss_based_share(
    rate_mbit: ArrayLike, rtt_ms: ArrayLike, buffer_bdp: ArrayLike, bbr_flows: ArrayLike,
    inflight_cap: float = INFLIGHT_CAP_GAIN,
) -> Array:  # fmt: skip
    """p of eq. 9: p = 1/k - (k - 1)/(k X) - 4 N / q with inflight cap k (2 in the paper), clipped to [0, 1].

    ValueError for a value that is not positive and finite.

    Args:
        rate_mbit, rtt_ms, buffer_bdp, bbr_flows: scalars or arrays that broadcast; all positive.
        inflight_cap: k, in estimated BDPs.

    Returns:
        Array of the broadcast shape.
    """
    c, l, x, n, k = _inputs(rate_mbit, rtt_ms, buffer_bdp, bbr_flows, inflight_cap)
    q = x * c * l
    return np.clip(1 / k - (k - 1) / (k * x) - PROBE_RTT_PACKETS * n / q, 0.0, 1.0)


def bbr_share(rate_mbit: ArrayLike, rtt_ms: ArrayLike, buffer_bdp: ArrayLike, bbr_flows: ArrayLike) -> Array:
    """BBR's aggregate share of the link, eqs. 10 and 11: (1 - p) (1 - (q/c + 0.2 s + l) / 10 s).

    The time d that the flows compete cancels. 0 where ProbeRTT would take all of it, which the model does not describe. Arguments and
    errors as for loss_based_share().
    """
    c, l, x, *_ = _inputs(rate_mbit, rtt_ms, buffer_bdp, bbr_flows)
    share = 1 - loss_based_share(rate_mbit, rtt_ms, buffer_bdp, bbr_flows)
    probing = (x * l + PROBE_RTT_S + l) / PROBE_INTERVAL_S + 0 * c
    return share * np.clip(1 - probing, 0.0, 1.0)


def _inputs(
    rate_mbit: ArrayLike, rtt_ms: ArrayLike, buffer_bdp: ArrayLike, bbr_flows: ArrayLike,
    inflight_cap: ArrayLike = INFLIGHT_CAP_GAIN,
) -> tuple[Array, ...]:  # fmt: skip
    values = {
        "rate_mbit": rate_mbit,
        "rtt_ms": rtt_ms,
        "buffer_bdp": buffer_bdp,
        "bbr_flows": bbr_flows,
        "inflight_cap": inflight_cap,
    }
    arrays = {k: np.asarray(v, dtype=float) for k, v in values.items()}
    for name, array in arrays.items():
        if not np.all(np.isfinite(array) & (array > 0)):
            raise ValueError(
                f"{name}: must be positive and finite, found {array[~(np.isfinite(array) & (array > 0))].flat[0]:g}"
            )
    rate, rtt, *others = np.broadcast_arrays(*arrays.values())
    return rate * 1e6 / 8 / PACKET_BYTES, rtt * 1e-3, *others


def share_of(network: Network, bbr_flows: int) -> float:
    """bbr_share() at a network's rate, base RTT and buffer, whether or not the model describes what else it has."""
    buffer_bdp = network.buffer_bytes / network.bdp_bytes
    return float(bbr_share(network.rate_mbit, network.mean_rtt_ms, buffer_bdp, bbr_flows))


def describes(scenario: Scenario) -> bool:
    """Whether the model speaks of the share of a scenario's first group: of any BBR, against loss-based flows."""
    first, *others = (flow.cca.startswith("bbr") for flow in scenario.flows)
    one_rtt = all(flow.has_networks_rtt for flow in scenario.flows)
    return first and bool(others) and not any(others) and one_rtt and ANY_BBR.describes(scenario)


def scenario_share(scenario: Scenario) -> float:
    """The model's share for the BBRv1 groups of a scenario. UserError if the model does not speak of such a scenario."""
    WORLD.check(scenario)
    for i, flow in enumerate(scenario.flows):
        if not flow.has_networks_rtt:
            field = "rtt_ms" if flow.rtts_ms is None else "rtts_ms"
            raise UserError(
                f"{scenario.name}: {WORLD.model} does not describe flows.{i}.{field}: all its flows have the network's RTT"
            )
    bbr = sum(f.count for f in scenario.flows if f.cca == "bbr1")
    if bbr == 0 or bbr == sum(f.count for f in scenario.flows):
        names = ", ".join(sorted({f.cca for f in scenario.flows}))
        raise UserError(f"{scenario.name}: {WORLD.model} needs BBRv1 flows against CUBIC or Reno flows, found {names}")
    share = share_of(scenario.network, bbr)
    if not share:
        raise UserError(
            f"{scenario.name}: {WORLD.model} does not describe network.buffer: at this rate it takes so long to drain that BBR's ProbeRTT "
            f"would fill the {PROBE_INTERVAL_S:g} s between two of them; give a smaller buffer"
        )
    return share
