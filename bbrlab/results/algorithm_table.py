"""Congestion-control algorithms: label, colour, and whether they are random, one line for each (base/algorithms.KNOWN).

Their parameters depend on the kernel (``bbrlab kernel``) and are described in docs/reference/bbr_parameters.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bbrlab.scenario.schema import NO_NOISE, Scenario


@dataclass(frozen=True)
class Algorithm:
    """A congestion control algorithm."""

    label: str
    colour: str  # in every figure (Okabe, Ito 2008: colour-blind safe)
    # Whether its code may draw random numbers. BBR draws its phase in ProbeBW; Linux's CUBIC and Reno draw none; DCTCP is assumed
    # to, so that it gets as many seeds as others
    draws: bool
    is_bbr: bool


ALGORITHMS = {
    "bbr1": Algorithm("BBRv1", "#0072B2", draws=True, is_bbr=True),
    "bbr2": Algorithm("BBRv2", "#56B4E9", draws=True, is_bbr=True),
    "bbr3": Algorithm("BBRv3", "#009E73", draws=True, is_bbr=True),
    "cubic": Algorithm("CUBIC", "#D55E00", draws=False, is_bbr=False),
    "reno": Algorithm("Reno", "#CC79A7", draws=False, is_bbr=False),
    "dctcp": Algorithm("DCTCP", "#E69F00", draws=True, is_bbr=False),
}
# Of what is no algorithm, such as the values of a sweep or the links of a path: no algorithm and no verdict (show/verdicts.py) has
# one of these, and none is near to an algorithm's or to another to the colour-blind (CIELAB distance 13 and more by the matrices of
# Machado et al. 2009).
OTHER_COLOURS = ("#551155", "#999933", "#992288", "#117733", "#661100", "#6644CC")
OWN_COLOUR = "#666666"  # of a user's own algorithm
QUEUE_COLOUR = OTHER_COLOURS[-1]  # the last that lines of a picture are given
QUIET = "#4D4D4D"  # of what is neither measured nor published: a model, a bound, a full buffer
COLOURS = {name: algorithm.colour for name, algorithm in ALGORITHMS.items()}


def label_of_cca(name: str) -> str:
    """An algorithm's label; for a user's own algorithm its name."""
    return ALGORITHMS[name].label if name in ALGORITHMS else name


def colour_of_link(number: int) -> str:
    """The colour of one of several links in a row."""
    return OTHER_COLOURS[number % len(OTHER_COLOURS)]


def colour_of_cca(name: str) -> str:
    """An algorithm's colour."""
    return COLOURS.get(name, OWN_COLOUR)


def tinted(colour: str, part: float) -> str:
    """A colour (#rrggbb) thinned with white: ``part`` of it is left, 0 to 1."""
    channels = (round(255 - part * (255 - int(colour[i : i + 2], 16))) for i in (1, 3, 5))
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def group_colour(ccas: Sequence[str], group: int) -> str:
    """The colour of a flow group: its algorithm's, lighter for each earlier group of that colour."""
    colours = [colour_of_cca(cca) for cca in ccas]
    before = colours[:group].count(colours[group])
    return tinted(colours[group], 0.2 + 0.8 * 0.45**before)


def draws_nothing(scenario: Scenario) -> bool:
    """Whether no seed is expected to change what a run measures: neither algorithms nor path draw random numbers.

    The remaining randomness (ports, sequence numbers) can only decide which of several flows comes first.
    """
    network = scenario.network
    return (
        all(
            flow.cca in ALGORITHMS and not ALGORITHMS[flow.cca].draws and flow.traffic is None
            for flow in scenario.flows
        )
        and not any(isinstance(rtt_ms, list) for rtt_ms in (network.rtt_ms, *(f.rtt_ms for f in scenario.flows)))
        and network.loss == 0
        and not any(change.loss for change in network.changes)
        and network.jitter is None
        and (network.data_path is None or not network.data_path.varies_ms)
        and network.qdisc.kind == network.towards("reverse").qdisc.kind == "fifo"
        and scenario.hosts.noise == NO_NOISE
    )
