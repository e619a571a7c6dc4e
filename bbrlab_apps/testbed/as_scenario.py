"""The scenario of what a testbed looks like, with what it was made of as comments."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.base.words import shown
from bbrlab.base.yaml_files import dump_yaml
from bbrlab.scenario.frames import IP_VERSION
from bbrlab.scenario.messages import validate
from bbrlab_apps.testbed.estimate import Estimate

WIDTH = 120


def name_of(file: Path) -> str:
    """A scenario's name from that of a file."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", file.name.removesuffix(".gz").rpartition(".")[0] or file.name).strip("-_")
    return plain[:60] or "testbed"


def content_of(estimate: Estimate, name: str) -> dict[str, Any]:
    """The keys of a scenario file."""
    network: dict[str, Any] = {
        "rate_mbit": estimate.rate_mbit,
        "rtt_ms": estimate.rtt_ms,
        "buffer": {"bdp": estimate.buffer_bdp},
    }
    if estimate.loss:
        network["loss"] = estimate.loss
    if estimate.ip_version != IP_VERSION:
        network["ip_version"] = estimate.ip_version
    flows = []
    for group in estimate.groups:
        flow: dict[str, Any] = {"cca": group.cca}
        if len(group.flows) > 1:
            flow["count"] = len(group.flows)
        if group.lab_start_s:
            flow["start_s"] = group.lab_start_s
        if group.lab_stop_s is not None:
            flow["stop_s"] = group.lab_stop_s
        if estimate.own_rtts:
            flow["rtt_ms"] = float(f"{group.rtt_ms:.3g}")
        if group.reverse:
            flow["direction"] = "reverse"
        flows.append(flow)
    return {
        "name": name,
        "network": network,
        # The RTTs are measured ones: what a testbed adds to a path's delay is in them.
        "hosts": {"segmentation": "nic", "noise": {"rtt_offset_us": 0}},
        "flows": flows,
        "duration_s": estimate.duration_s,
        "window_s": list(estimate.window_s),
    }


def text_of(estimate: Estimate, name: str) -> str:
    """The text of a scenario file. UserError if no scenario can have what the files look like, such as a rate above 12 Gbit/s."""
    content = content_of(estimate, name)
    try:
        validate(content, name)
    except UserError as error:
        raise UserError(f"the files look like what the lab does not have: {error}") from None
    files = dict.fromkeys(str(group.recording.file) for group in estimate.groups)
    lines = _comment(f"Made by bbrlab beside of {', '.join(files)}.")
    lines += [line for f in estimate.findings for line in _comment(f"{f.what}: {f.value} ({f.evidence})")]
    lines += [line for words in estimate.contradictions for line in _comment(f"CONTRADICTION: {words}")]
    lines += [line for words in estimate.assumed for line in _comment(f"Assumed: {words}.")]
    return "\n".join([*lines, dump_yaml(content)])


def _comment(words: str) -> list[str]:
    return textwrap.wrap(shown(" ".join(words.split())), WIDTH, initial_indent="# ", subsequent_indent="#   ")
