"""One run as one file that needs nothing else: curves over time, BBR's states, self-checks, how to repeat it."""

from __future__ import annotations

import functools
import json
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from bbrlab.base import files, paths
from bbrlab.base.algorithms import own_sources
from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import dump_yaml
from bbrlab.kernel.own import recipe_name
from bbrlab.kernel.specs import load_specs
from bbrlab.measure.bbr_record import STATES
from bbrlab.measure.checks.check import failed_of
from bbrlab.measure.metrics import GROUP, RUN, label_of
from bbrlab.measure.phases import phases
from bbrlab.measure.sample_schema import IN_FLIGHT, of_link
from bbrlab.measure.summary import Summary, path_words
from bbrlab.results.algorithm_table import QUEUE_COLOUR, QUIET, colour_of_cca, colour_of_link, label_of_cca
from bbrlab.results.curves import thinned
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.run_manifest import RunManifest, RunScenario
from bbrlab.results.samples import BOUNDS, read_over_time
from bbrlab.results.series import columns_of, series_of, values_of
from bbrlab.run.output import ACKS, SAMPLES
from bbrlab.scenario.link_trace import shipped_trace
from bbrlab.scenario.load import base_point, load_scenario
from bbrlab.scenario.messages import validate
from bbrlab.scenario.needs import refuse_without_effect
from bbrlab.scenario.rates import before, buffer_full_ms, rates_at
from bbrlab.scenario.schema import Network, Scenario
from bbrlab.show.verdicts import colours_css
from bbrlab_apps.site.curve_pictures import name_once
from bbrlab_apps.site.html import embedded, number, render

STATIC = Path(__file__).parent / "static"
POINTS = 1500  # of a curve; of more the lowest and the highest of each stretch are drawn
FLOWS = 6  # that have curves of their own; of more flows, groups have
AS_RUN = "this_run.yaml"  # what the page calls a file with the scenario that it shows
_NEEDED = ("time_s", "flow", "group", "bytes_acked", "cwnd", "srtt_us", "queue_bytes", "bbr_state")
_INFLIGHT_BOUNDS = ("bbr_inflight_hi", "bbr_inflight_lo")
_COLUMNS = (*_NEEDED, *IN_FLIGHT, "pacing_rate", "total_retrans", "queue_drops", "bbr_bw", *_INFLIGHT_BOUNDS)
_OF_ACKS = ("time_s", "flow", "bbr_state")
_SHOWN = (
    "goodput_mbit", "share_of_capacity", "retransmits", "rtt_ms_mean", "cwnd_packets", "jain_index", "first_data_s", "last_first_data_s",
)  # fmt: skip
_OF_LINKS = ("utilisation", "loss", "drops", "occupancy", "queue_ms_mean", "queue_ms_p95")
_SERIES = ("goodput", "cwnd", "rtt", "queue", "pacing", "bw", "inflight", "retransmits")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def write_run_page(folder: Path, out: Path) -> None:
    """Write a run's page, whole or not at all. UserError naming the file of the run that is missing, or not as it must be.

    Args:
        folder: has summary.json, manifest.json and samples.parquet; BBR's states are those of acks.parquet where that is there.
    """
    run = RunFolder(folder)
    summary, path = run.summary, folder / SAMPLES
    if not path.exists():
        raise UserError(f"{path}: is not there: samples do not ship; run the point again to see it over time")
    manifest, typed = run.manifest, run.manifest_as(RunManifest)
    links = range(len(typed.scenario.network.links or ()))
    columns = [*_COLUMNS, *(of_link(name, i) for name in ("queue_bytes", "queue_drops") for i in links)]
    samples = _floats(read_over_time(path, typed.scenario, _NEEDED, columns, typed.scenario.most_samples))
    recorded, acks = folder / ACKS, None
    if recorded.exists():
        acks = _floats(read_over_time(recorded, typed.scenario, _OF_ACKS))
    files.write_text(out, _page(summary, manifest, typed.scenario, samples, acks, folder))


def _floats(table: pd.DataFrame) -> pd.DataFrame:
    """A table with floats in all columns but ``flow`` and ``group``; NaN where there is no bound."""
    table = table.astype({column: int if column in ("flow", "group") else float for column in table})
    return table.replace({column: {np.inf: np.nan} for column in BOUNDS if column in table})


def _page(
    summary: Summary, manifest: Any, typed: RunScenario, samples: pd.DataFrame, acks: pd.DataFrame | None, folder: Path
) -> str:
    scenario = manifest["scenario"]
    made = [c for c in summary["checks"] if c["ok"] is not None]
    return render(
        "run.html",
        title=f"{_paper(scenario)}{summary['figure'] or scenario['name']}, seed {summary['seed']}",
        values=", ".join(f"{k.removeprefix('network.')} = {v}" for k, v in summary["values"].items()),
        conditions=_conditions(scenario, typed.network, summary),
        made=len(made),
        failed=[c["name"] for c in failed_of(made)],
        groups=_groups(summary),
        bottleneck=_bottleneck(summary),
        links=_links(summary),
        checks=summary["checks"],
        repeat=_repeat(manifest, summary),
        is_virtual=summary["backend"] == "uml",
        origin=_origin(manifest, summary, folder),
        data=embedded(_panels(summary, typed, samples, acks), "series-data"),
        sampling=_sampling(samples, acks, float(scenario["sample_hz"])),
        queue=""
        if typed.network.rate_is_known
        else "How long the queue's packets wait is not told: the file that says when the link sends is not here as it was run.",
        css=Markup(colours_css() + (STATIC / "site.css").read_text(encoding="utf-8")),
        plotly=Markup(_script("plotly-cartesian.min.js")),
        site=Markup(_script("site.js")),
    )


@functools.cache
def _script(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8").replace("</script", "<\\/script")


def _paper(scenario: Any) -> str:
    """A scenario's paper and a space; nothing for one of one's own that names none."""
    return "" if scenario["paper"] == Scenario.model_fields["paper"].default else f"{scenario['paper']} "


def _conditions(scenario: Any, network: Network, summary: Summary) -> str:
    flows = " against ".join(f"{flow['count']} {label_of_cca(flow['cca'])}" for flow in scenario["flows"])
    of_all = [flow.get("rtts_ms") or flow.get("rtt_ms") or network.rtt_ms for flow in scenario["flows"]]
    rtts = sorted({rtt for one in of_all for rtt in (one if isinstance(one, list) else [one])})
    rtt = " to ".join(dict.fromkeys(number(r) for r in (rtts[0], rtts[-1])))
    path = (
        f"{number(network.rate_mbit)} Mbit/s, RTT {rtt} ms, buffer {number(summary['bottleneck']['buffer_bytes'] / 1000, 6)} kB, "
        f"{network.qdisc.kind}"
    )
    if network.links is not None:
        kinds = ", ".join(dict.fromkeys(link.qdisc.kind for link in network.bottlenecks))
        path = f"{len(network.links)} links in a row, RTT {rtt} ms without what links add, {kinds}"
    return f"{flows}; {path}; {summary['virtual_s']:g} s, metrics over {summary['window_s'][0]:g} to {summary['window_s'][1]:g} s."


def _groups(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """The heads of the table of flow groups, and its rows."""
    groups = summary["groups"]
    several = [g for g in groups if g["count"] > 1]  # one flow is always fair to itself
    of = {m: several if m == "jain_index" else groups for m in _SHOWN}
    metrics = [m for m in _SHOWN if any(GROUP[m].of_group(g) is not None for g in of[m])]
    rows = [
        [
            f"{g['count']} {label_of_cca(g['cca'])}{_which(groups, i)}{path_words(summary, i)}",
            *(number(GROUP[m].of_group(g)) if g in of[m] else "" for m in metrics),
        ]
        for i, g in enumerate(groups)
    ]
    return ["flows", *map(label_of, metrics)], rows


def _bottleneck(summary: Summary) -> list[tuple[str, str]]:
    """Metrics of the bottleneck: names and values."""
    lines = [
        ("utilisation", "utilisation", ""), ("loss", "loss", ""), ("occupancy", "occupancy", ""),
        ("queueing delay", "queue_ms_mean", " ms"), ("its 95th percentile", "queue_ms_p95", " ms"),
    ]  # fmt: skip
    if len(summary["flows"]) > 1 and summary["jain_index"] is not None:
        lines.append(("Jain's index of all flows", "jain_index_all", ""))
    return [(name, f"{number(RUN[metric].of_run(summary))}{unit}") for name, metric, unit in lines]


def _links(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """The heads of the table of several links in a row, and its rows; no rows where there is one bottleneck."""
    rows = [
        [
            str(link["link"]), number(link["rate_mbit"]), number(link["buffer_bytes"] / 1000, 6),
            *(number(RUN[metric].of_bottleneck(link)) for metric in _OF_LINKS),
        ]
        for link in summary.get("links", [])
    ]  # fmt: skip
    return ["link", "rate (Mbit/s)", "buffer (kB)", *map(label_of, _OF_LINKS)], rows


def _repeat(manifest: Any, summary: Summary) -> dict[str, str]:
    """How to have this very run again: the command, and the text of its scenario where no file of scenarios/ has this point; without
    any, why no scenario of one run is it."""
    given, text, why = _of_checkout(manifest), "", ""
    if not given:
        text, why = _scenario_text(manifest["scenario"])
        given = [AS_RUN]
    words = ["bbrlab", "run", *given, "--seed", str(summary["seed"]), *options_of(summary), "--out", "/tmp/again"]
    return {"command": "" if why else shlex.join(words), "file": AS_RUN, "scenario": text, "why": why}


def _of_checkout(manifest: Any) -> list[str]:
    """The file of scenarios/ that a run is a point of, with what chooses the point; empty if there is none."""
    scenario, values = manifest["scenario"], dict(manifest["values"])
    case = values.pop("case", None)
    file = paths.SCENARIOS / scenario["paper"] / f"{scenario['name']}.yaml"
    if not file.is_file() or not isinstance(case, str | None):
        return []
    try:
        point = base_point(load_scenario(file, values, case, files=False))
    except UserError:
        return []
    if point.fingerprint != manifest["fingerprint"]:
        return []
    chosen = [word for k, v in values.items() for word in ("--set", f"{k}={_word(v)}")]
    return [str(file.relative_to(paths.ROOT)), *chosen, *(["--case", case] if case else [])]


def _scenario_text(ran: Any) -> tuple[str, str]:
    """A scenario's file that asks for what was run and nothing else; empty, and why, if no such file is valid."""
    content = _without_nothing(ran)
    if (trace := shipped_trace(content["network"].get("trace", ""))) is not None:
        content["network"]["trace"] = trace.stem  # its place is another one on each machine
    try:
        scenario = validate(content, "it")
    except UserError:  # an algorithm or file that is not here, but may be where it is run
        pass
    else:
        try:
            refuse_without_effect([base_point(scenario)], "its scenario")
        except UserError as error:
            return "", str(error)
    return dump_yaml(content, sort_keys=False), ""


def _without_nothing(content: Any) -> Any:
    """A scenario without fields that have no value."""
    if isinstance(content, list):
        return [_without_nothing(one) for one in content]
    if not isinstance(content, dict):
        return content
    return {key: _without_nothing(one) for key, one in content.items() if one is not None and one not in ("", [], {})}


def options_of(summary: Summary) -> list[str]:
    """What else makes the run what it is: backend, kernels, algorithms of one's own. A play is run again in virtual time."""
    kernel, backend = summary["kernel"], summary["backend"]
    options = [] if backend in ("uml", "play") else ["--backend", backend]
    if backend != "host" and (name := recipe_name(kernel["name"])) != load_specs().default:
        options += ["--kernel", name]
    for group, of in summary.get("sender_kernels", {}).items():
        options += ["--sender-kernel", f"{group}={of['name']}"]
    for name in kernel.get("own", {}):
        options += [] if name in own_sources() else ["--cca-source", f"{name}.c"]
    return options


def _word(value: Any) -> str:
    """A value as --set reads it."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_word, value)) + "]"
    return number(value, 12) if isinstance(value, float) else json.dumps(value).strip('"')


def _origin(manifest: Any, summary: Summary, folder: Path) -> tuple[tuple[str, str], ...]:
    """Where the run comes from: names and values."""
    kernel, source = summary["kernel"], manifest.get("source", {})
    return (
        ("kernel", f"{kernel['name']} ({kernel['release']}), key {kernel['key']}"),
        ("commit", f"{source.get('commit', 'unknown')}{' with changes' if source.get('modified') else ''}"),
        ("backend", str(summary["backend"])),
        ("real time", f"{summary['wall_s']:.1f} s" if summary["wall_s"] else "–"),
        ("folder", str(folder.relative_to(paths.results_folder()) if folder.is_relative_to(paths.results_folder()) else folder.name)),
    )  # fmt: skip


def _sampling(samples: pd.DataFrame, acks: pd.DataFrame | None, sample_hz: float) -> str:
    """How exact the times of curves, and of BBR's states, are."""
    sampled = f"of the samples, one each {number(1 / sample_hz)} s: what is shorter may be missing"
    if samples["bbr_state"].isna().all():
        return f"Curves are {sampled}."
    if acks is not None:
        return f"Curves are {sampled}; BBR's states are recorded at each ACK: every stay is there."
    return (
        f"Curves and BBR's states are {sampled}, and a stay looks up to that much longer or shorter. "
        "The option --trace-changes of bbrlab run records each change."
    )


def _panels(
    summary: Summary, scenario: RunScenario, samples: pd.DataFrame, acks: pd.DataFrame | None
) -> dict[str, Any]:
    """The curves: those of _SERIES that the run has, and BBR's states."""
    network, ccas = scenario.network, [flow.cca for flow in scenario.flows]
    flows = samples[samples["flow"] >= 0]
    by = "flow" if flows["flow"].nunique() <= FLOWS else "group"
    names = _names(flows, by, ccas) | _names_of_queues(network)
    once = samples.drop_duplicates("time_s")
    times = once["time_s"].to_numpy()
    ends = (float(times.min()), float(times.max())) if len(times) else (0.0, 0.0)
    panels: list[dict[str, Any]] = []
    for name in _SERIES:
        if not set(columns_of(scenario, name)) <= set(samples):
            continue
        curves = values_of(scenario, name, samples, by)
        lines = [_line(names[of], *curve) for of, curve in curves.items()]
        match name:
            case "queue" if lines:
                lines += _full_buffers(summary, network, ends)
            case "bw" if lines and network.links is None and network.rate_is_known:
                forward = [i for i, group in enumerate(summary["groups"]) if group["direction"] == "forward"]
                lines.append(_equal_share(flows[flows["group"].isin(forward)], network, summary["virtual_s"]))
            case "inflight":
                lines += _bounds(names, scenario, samples, by)
            case "retransmits":
                lines += _drops(names, network, once)
        if lines:
            mean = ", mean" if by == "group" and name not in ("goodput", "queue") else ""
            panels.append({"label": series_of(name).label + mean, "lines": lines})
    name_once(panels)
    for flow in _first_bbr_flows(flows):
        stays, how = pd.DataFrame() if acks is None else phases(acks, flow), "each change recorded"
        if stays.empty:  # no ACKs were recorded, or none of this flow
            stays, how = phases(samples, flow), f"sampled every {number(1 / scenario.sample_hz)} s"
        ends_s = stays["end_s"].fillna(ends[1])
        x = np.column_stack([stays["start_s"], ends_s]).ravel().tolist()
        y = [s for state in stays["state"] for s in (state, state)]
        cca = ccas[int(flows.loc[flows["flow"] == flow, "group"].iloc[0])]
        panels.append({"label": f"{label_of_cca(cca)}, flow {flow + 1}: state, {how}", "states": list(STATES),
                       "lines": [{"name": "state", "colour": colour_of_cca(cca), "x": x, "y": y}]})  # fmt: skip
    return {"panels": panels, "window_s": list(summary["window_s"])}


def _which(groups: Sequence[Any], group: int) -> str:
    """Which flows a group has, where others have its algorithm, too: numbers as in the curves' names."""
    if sum(g["cca"] == groups[group]["cca"] for g in groups) == 1:
        return ""
    before, count = sum(g["count"] for g in groups[:group]), groups[group]["count"]
    return f", flow {before + 1}" if count == 1 else f", flows {before + 1} to {before + count}"


def _names_of_queues(network: Network) -> dict[int, dict[str, str]]:
    """{bottleneck, -1 and down: name and colour of its curve}."""
    if network.links is None:
        return {-1: {"name": "queue", "colour": QUEUE_COLOUR}}
    return {-1 - i: {"name": f"link {i}", "colour": colour_of_link(i)} for i in range(len(network.links))}


def _full_buffers(summary: Summary, network: Network, ends: tuple[float, float]) -> list[dict[str, Any]]:
    """The queueing delay of a full buffer: once of several bottlenecks that are alike."""
    full = {}
    for link in network.bottlenecks:
        size = link.buffer_bytes if network.links else float(summary["bottleneck"]["buffer_bytes"])
        delay = buffer_full_ms(before(link, summary["virtual_s"]), *ends, size)
        line = _line({"name": "full buffer", "colour": QUIET, "dash": "dash"}, *delay)
        full[str(line)] = line
    return list(full.values())


def _equal_share(flows: pd.DataFrame, network: Network, virtual_s: float) -> dict[str, Any]:
    """What an equal share of the data that the bottleneck can carry is: BBR's bandwidth is of data, without headers."""
    there = flows.groupby("time_s")["flow"].nunique()
    times = there.index.to_numpy(dtype=float)
    look = {"name": "an equal share of the link, without headers", "colour": QUIET, "dash": "dash"}
    rates = rates_at(before(network, virtual_s), times) * network.payload_bytes / network.frame_bytes
    return _line(look, times, rates / there.to_numpy())


def _bounds(
    names: dict[int, dict[str, str]], scenario: RunScenario, samples: pd.DataFrame, by: str
) -> list[dict[str, Any]]:
    """BBR's bounds of what is in flight: inflight_hi dashed, inflight_lo dotted."""
    lines = []
    for column, dash in zip(_INFLIGHT_BOUNDS, ("dash", "dot"), strict=True):
        for of, curve in values_of(scenario, column, samples, by).items() if column in samples else ():
            look = {**names[of], "name": f"{names[of]['name']}: {column.removeprefix('bbr_')}", "dash": dash}
            lines.append(_line(look, *curve))
    return lines


def _drops(names: dict[int, dict[str, str]], network: Network, once: pd.DataFrame) -> list[dict[str, Any]]:
    """What each queue dropped since the start."""
    lines = []
    for i in range(len(network.bottlenecks)):
        column = "queue_drops" if network.links is None else of_link("queue_drops", i)
        if column in once:
            drops = once[column].to_numpy()
            whose = "the queue" if network.links is None else names[-1 - i]["name"]
            look = {**names[-1 - i], "name": f"dropped by {whose}", "dash": "dash"}
            lines.append(_line(look, once["time_s"].to_numpy(), drops - drops[:1]))
    return lines


def _names(flows: pd.DataFrame, by: str, ccas: Sequence[str]) -> dict[int, dict[str, str]]:
    """{flow or group: its name, colour and dash}."""
    groups = flows.groupby(by)["group"].first()
    names, used = {}, Counter[str]()
    for which, group in groups.items():
        cca = ccas[int(group)]
        colour = colour_of_cca(cca)
        dash = _DASHES[used[colour] % len(_DASHES)]
        used[colour] += 1
        label = f"flow {int(str(which)) + 1}" if by == "flow" else f"group {int(str(which)) + 1}"
        names[int(str(which))] = {"name": f"{label_of_cca(cca)}, {label}", "colour": colour, "dash": dash}
    return names


def _first_bbr_flows(flows: pd.DataFrame) -> list[int]:
    """The first flow of each group that tells its states."""
    with_state = flows[flows["bbr_state"].notna()]
    return [int(f) for f in with_state.groupby("group")["flow"].min()]


def _line(look: dict[str, str], times: Array, values: Array) -> dict[str, Any]:
    x, y = thinned(np.asarray(times, dtype=float), np.asarray(values, dtype=float), POINTS)
    return {
        **look,
        "x": [round(float(v), 4) for v in x],
        "y": [None if not np.isfinite(v) else float(f"{v:.5g}") for v in y],
    }
