"""Parameters of the kernel's own algorithms, with the values for which each is defined. bbr2's and bbr3's are checked by their module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

INT_MAX = 2**31 - 1
SWITCH_WORDS = {"on": True, "off": False, "y": True, "n": False}  # of those that the kernel takes


@dataclass(frozen=True)
class Number:
    """A whole number, the ends included."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Switch:
    """On or off."""

    number: bool = False  # the kernel has it as a number, and takes no word for it

    def __str__(self) -> str:
        return "on or off"


# {algorithm: {module parameter: its values}} of Linux 6.12 (tcp_cubic.c, tcp_dctcp.c), and of bbr1 as kernels/patches/bbr makes it.
PARAMETERS: Mapping[str, Mapping[str, Number | Switch]] = {
    "bbr1": {
        # Below 10 % a flow hardly sends in that phase; 400 % is more than the bits that keep the gain hold.
        "up_pacing_gain_percent": Number(10, 399),
        "down_pacing_gain_percent": Number(10, 399),
        "policer_detection": Switch(),
    },
    "cubic": {
        "fast_convergence": Switch(number=True),
        # Parts of 1024 that a loss leaves of the window. The kernel divides by 1024 - beta; with 0 nothing is left.
        "beta": Number(1, 1023),
        "initial_ssthresh": Number(0, INT_MAX),  # 0: none; a negative one would be read as one without a sign
        "bic_scale": Number(1, INT_MAX // 10),  # the kernel divides by ten times this, which it keeps in an int
        "tcp_friendliness": Switch(number=True),
        "hystart": Switch(number=True),
        "hystart_detect": Number(0, 3),  # a sum of 1 (trains of ACKs) and 2 (delay)
        "hystart_low_window": Number(0, INT_MAX),  # compared with a window, without a sign
        "hystart_ack_delta_us": Number(0, INT_MAX),  # a time
    },
    "dctcp": {
        "dctcp_shift_g": Number(0, 10),  # the kernel shifts left by 10 less this
        "dctcp_alpha_on_init": Number(0, 1024),  # parts of 1024; the kernel takes more as 1024
    },
    "reno": {},
}  # fmt: skip
# With a smaller beta CUBIC's step of the window that Reno would have is none when the window is 2 packets, and the kernel takes
# such steps for ever: 2 * (8 * (1024 + beta) / 3 / (1024 - beta)) / 8, each division rounded down, is 1 from here on.
FRIENDLY_BETA_MIN = 205


def checked(cca: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an algorithm, switches as the kernel takes them. ValueError for a value outside of what is defined.

    Names that are not in the table stay: another kernel may have them (unknown_parameter_message()).
    """
    known = PARAMETERS.get(cca, {})
    result = {name: _checked(name, value, known[name]) if name in known else value for name, value in params.items()}
    if (
        cca == "cubic"
        and result.get("beta", FRIENDLY_BETA_MIN) < FRIENDLY_BETA_MIN
        and result.get("tcp_friendliness", 1)
    ):
        raise ValueError(
            f"beta = {result['beta']}: must be from {FRIENDLY_BETA_MIN} to 1023, or tcp_friendliness off: with a smaller one "
            "cubic would compute for ever at a window of 2 packets"
        )  # fmt: skip
    return result


def _checked(name: str, value: Any, kind: Number | Switch) -> Any:
    if isinstance(kind, Switch):
        on = SWITCH_WORDS.get(value.lower()) if isinstance(value, str) else value
        if isinstance(on, int) and on in (0, 1):
            return int(on) if kind.number else value
    elif isinstance(value, int) and not isinstance(value, bool) and kind.low <= value <= kind.high:
        return value
    said = {True: "on", False: "off"}[value] if isinstance(value, bool) else value  # as YAML has the words
    raise ValueError(f"{name} = {said}: must be {kind}")


def unknown_parameter_message(cca: str, name: str, there_are: list[str], place: str = "") -> str:
    """What is said of a parameter that an algorithm does not have, with one that may be meant."""
    close = get_close_matches(name, there_are, 1)
    meant = f"; did you mean '{close[0]}'?" if close else ""
    return f"{cca} has no parameter '{name}'{place}{meant} (it has: {', '.join(there_are) or 'none'})"
