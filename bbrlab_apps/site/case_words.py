"""A case's name in words, for a chart's menus, legends and axes. On a command line it keeps its name."""

from __future__ import annotations

import re

from bbrlab.results.algorithm_table import label_of_cca

# The beginning of a figure's id ("": any), a pattern of the whole name, and its words; the first that fits counts.
_WORDS = (
    ("questions/adoption", r"(\w+)-(\d+)", r"\2 \1 of ten"),
    ("questions/pairs", r"(\d+)-(\d+)", r"\1 Mbit/s, \2 BDP"),
    ("questions/map_buffer_flows", r"(\w+)-(\w+)-\d+M-\d+ms-N(\d+)-X([\d.]+)", r"\3 \1 v \2, \4 BDP"),
    ("questions/map_rate_rtt", r"(\w+)-(\w+)-(\d+)M-(\d+)ms-.*", r"\1 v \2, \3 Mbit/s, \4 ms"),
    ("questions/phase_period", r"(\w+)-cubic-moves", r"\1, RTT of cubic moves"),
    ("questions/phase_period", r"(\w+)-bbr-moves", r"\1, RTT of \1 moves"),
    ("questions/phase", r"(\w+)-(\w+)-(\d+)M-off", r"\1 v \2, \3 Mbit/s, no noise"),
    ("questions/phase", r"(\w+)-(\w+)-(\d+)M-noise", r"\1 v \2, \3 Mbit/s, noise"),
    ("questions/phase", r"(\w+)-off", r"two \1 flows, no noise"),
    ("questions/phase", r"(\w+)-noise", r"two \1 flows, noise"),
    ("questions/readings_50mbit", r"(\w+)-(\w+)-(\d+)-(\d+)", r"\1, \2, \3 v 1, \4 BDP"),
    ("questions/readings_shares", r"(\w+)-(\w+)-(\w+)-(\w+)", r"\1 v \2, \3 and \4"),
    ("questions/readings_shares", r"(\w+)-(\w+)-(\w+)", r"\1 v \2, \3"),
    ("questions/readings_", r"(\w+)-(\w+)-(\w+)", r"\1, \2 and \3"),
    ("questions/readings_", r"(\w+)-(\w+)", r"\1, \2"),
    ("questions/kernel_age", r"(\w+)-(\w+)", r"\1 v \2"),
    ("questions/issue109_late", r"v3-(\d+)", r"every 5 s, second flow at \1 s"),
    ("questions/issue109_late", r"issue109-(\d+)", r"every 10 s, second flow at \1 s"),
    ("questions/issue109", r"(alone|two)-v3", r"\1, every 5 s"),
    ("questions/issue109", r"(alone|two)-issue109", r"\1, every 10 s"),
    ("questions/issue109", r"cubic-v3", r"beside cubic, every 5 s"),
    ("questions/issue109", r"cubic-issue109", r"beside cubic, every 10 s"),
    ("cao2019/fig5_offloads", r"(\w+)-gro", r"\1 with GRO"),
    ("cao2019/fig5_offloads", r"(\w+)-router", r"\1, TSO cut by the router"),
    ("cao2019/fig7", r"(\w+)-([\d.]+)", r"\1, pacing gain \2"),
    ("cao2019/fig8_conditions", r"default-memory", r"default socket memory"),
    ("cao2019/fig8_conditions", r"single-packets", r"no offloads"),
    ("cao2019/fig8_conditions", r"(\w+)-first", r"\1 starts first"),
    ("cao2019/fig8_cycle", r"from-(\d+)-s", r"measured from \1 s"),
    ("bless2025/fig14", r"(\w+)-(\w+)", r"\1, \2 traffic"),
    ("bless2025/sec7", r"cubic", r"beside cubic"),
    ("bless2025/sec7", r"other-rtt", r"beside bbr3, other RTT"),
    ("bless2025/sec7", r"late", r"beside bbr3, which is late"),
    ("bless2025/sec4b", r"no-offload-budget", r"without the offload budget"),
    ("bless2025/sec4b", r"no-extra-acked", r"without extra_acked"),
    ("bless2025/", r"slotted-(\d+)(?:ms)?", r"\1 ms in slots"),
    ("bless2025/", r"per-packet-(\d+)(?:ms)?", r"\1 ms per packet"),
    ("bless2025/", r"quiet", r"no jitter"),
    ("tang/sec5a", r"first-20-s", r"5 to 20 s"),
    ("tang/sec5a", r"later", r"20 to 100 s"),
    ("", r"(\d+)(s|ms)", r"\1 \2"),
)  # fmt: skip
# Of Zeynali et al.'s cases, by their parts: BBR's version, how it takes CoDel's marks, CoDel's target, and how many CUBIC flows.
_ECN = {
    "no-ecn-codel": "CoDel without ECN",
    "no-ecn": "no ECN",
    "codel-": "CoDel, ",
    "off": "ECN off",
    "ignore": "ECN ignored",
    "on": "ECN used",
}
_ECN_CASE = re.compile(r"(?:(bbr\d)-)?(no-ecn-codel|no-ecn|(?:codel-)?(?:off|ignore|on))(-own-target)?(-5-cubic)?")
_NAMES = {"ecn": "ECN", "codel": "CoDel", "rtt": "RTT"}


def words_of_case(case: str, figure: str = "") -> str:
    """A case's name for people: its parts in words, its algorithms by their labels."""
    if figure.startswith("zeynali2024/") and (parts := _ECN_CASE.fullmatch(case)):
        marks = re.sub(r"no-ecn-codel|no-ecn|codel-|off|ignore|on", lambda part: _ECN[part[0]], parts[2])
        target, many = ", own target" if parts[3] else "", ", 5 CUBIC" if parts[4] else ""
        return ", ".join(filter(None, [parts[1] and label_of_cca(parts[1]), f"{marks}{target}{many}"]))
    fitting = (
        match.expand(words)
        for start, pattern, words in _WORDS
        if figure.startswith(start) and (match := re.fullmatch(pattern, case))
    )
    words = next(fitting, case)
    return re.sub(r"[^\W_]+", lambda word: _NAMES.get(word[0], label_of_cca(word[0])), words).replace("+", " + ")
