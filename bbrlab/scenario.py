"""Scenario files: the schema, its checks, ``--set`` overrides and sweeps.

The format is described in config/README.md; ``bbrlab schema`` prints it as JSON Schema. Everything wrong with a file
is found here, before anything starts, and named by file, field and value.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from bbrlab.errors import UserError

FRAME_BYTES = 1514  # full-size Ethernet frame, as tc counts it
MAX_STREAMS = 128  # parallel streams that one iperf3 allows
PLAIN_WORD = re.compile(r"[\w.,:+-]{1,64}")  # what may stand on a kernel command line
Cca = Literal["bbr1", "bbr2", "bbr3", "cubic", "reno", "dctcp"]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, lt=1)]


def _switch(value: Any) -> Any:
    """YAML 1.1 reads the bare words off and on as booleans."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


Switch = BeforeValidator(_switch)
RttMs = Annotated[float, Field(gt=0, le=10_000)]


class Strict(BaseModel):
    """Unknown keys are errors, and values are never silently converted between text and number."""

    model_config = ConfigDict(extra="forbid", strict=False, frozen=True)


class Buffer(Strict):
    """Bottleneck buffer: exactly one of BDP, bytes, packets (of 1514 bytes)."""

    bdp: Positive | None = Field(None, description="multiples of rate_mbit x rtt_ms (mean of a range)")
    bytes: Annotated[int, Field(ge=FRAME_BYTES)] | None = Field(None, description="bytes, as tc counts them (L2)")
    packets: Annotated[int, Field(ge=1)] | None = Field(None, description="full-size frames of 1514 bytes")

    @model_validator(mode="after")
    def _one(self) -> Buffer:
        given = [k for k in ("bdp", "bytes", "packets") if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of bdp, bytes, packets (found: {', '.join(given) or 'none'})")
        return self


QDISC_OPTIONS: dict[str, set[str]] = {
    "fifo": set(),
    "red": {"ecn", "harddrop", "adaptive", "min_bytes", "max_bytes", "avpkt_bytes", "burst_packets", "probability"},
    "codel": {"ecn", "target_ms", "interval_ms", "ce_threshold_ms"},
    "fq_codel": {"ecn", "target_ms", "interval_ms", "ce_threshold_ms", "flows", "quantum_bytes"},
    "pie": {"ecn", "target_ms", "tupdate_ms", "alpha", "beta"},
    "cake": {"rtt_ms", "isolation"},
    "fq": {"ce_threshold_ms", "quantum_bytes", "flow_limit_packets"},
}


class Qdisc(Strict):
    """Bottleneck queue discipline with the options of its kind (see ``man tc-<kind>``)."""

    kind: Literal["fifo", "red", "codel", "fq_codel", "pie", "cake", "fq"] = "fifo"
    ecn: bool | None = Field(None, description="mark ECT packets in place of dropping them (red, codel, fq_codel, pie)")
    harddrop: bool | None = Field(None, description="red: drop above max_bytes even if ECT")
    adaptive: bool | None = Field(None, description="red: adapt the probability")
    min_bytes: Annotated[int, Field(gt=0)] | None = Field(None, description="red: lower threshold; default: limit / 12")
    max_bytes: Annotated[int, Field(gt=0)] | None = Field(None, description="red: upper threshold; default: limit / 4")
    avpkt_bytes: Annotated[int, Field(gt=0)] | None = Field(None, description="red: mean packet size; default: 1514")
    burst_packets: Annotated[int, Field(gt=0)] | None = Field(None, description="red: burst; default: from min and max")
    probability: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="red: mark probability at max_bytes"
    )
    target_ms: Positive | None = Field(None, description="codel, fq_codel, pie: target delay")
    interval_ms: Positive | None = Field(None, description="codel, fq_codel: interval")
    tupdate_ms: Positive | None = Field(None, description="pie: update interval")
    alpha: Annotated[int, Field(ge=0, le=32)] | None = Field(None, description="pie")
    beta: Annotated[int, Field(ge=0, le=32)] | None = Field(None, description="pie")
    ce_threshold_ms: Positive | None = Field(None, description="codel, fq_codel, fq: mark above this sojourn time")
    flows: Annotated[int, Field(gt=0)] | None = Field(None, description="fq_codel: number of queues")
    quantum_bytes: Annotated[int, Field(gt=0)] | None = Field(None, description="fq_codel, fq")
    flow_limit_packets: Annotated[int, Field(gt=0)] | None = Field(None, description="fq: default: the whole buffer")
    rtt_ms: Positive | None = Field(None, description="cake: the RTT it is tuned for")
    isolation: Literal["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"] | None = Field(None, description="cake: what is kept apart")  # fmt: skip

    @model_validator(mode="after")
    def _known(self) -> Qdisc:
        given = {k for k in type(self).model_fields if k != "kind" and getattr(self, k) is not None}
        wrong = given - QDISC_OPTIONS[self.kind]
        if wrong:
            known = ", ".join(sorted(QDISC_OPTIONS[self.kind])) or "none"
            raise ValueError(f"qdisc {self.kind} has no option {', '.join(sorted(wrong))} (its options: {known})")
        if self.min_bytes and self.max_bytes and self.min_bytes >= self.max_bytes:
            raise ValueError(f"min_bytes {self.min_bytes} must be below max_bytes {self.max_bytes}")
        return self


class Jitter(Strict):
    """Adds between 0 and ``ms`` to the path's delay (in the ACK direction); never reorders."""

    kind: Literal["slotted", "per-packet"]
    ms: Positive
    group: Annotated[int, Field(ge=0)] | None = Field(None, description="flow group; default: every group")


class Change(Strict):
    """What changes at ``at_s``. The buffer keeps its bytes."""

    at_s: NonNegative
    rate_mbit: Positive | None = None
    rtt_ms: RttMs | None = Field(None, description="for every flow without an rtt_ms of its own")
    loss: Probability | None = None

    @model_validator(mode="after")
    def _something(self) -> Change:
        if self.rate_mbit is None and self.rtt_ms is None and self.loss is None:
            raise ValueError("a change needs at least one of rate_mbit, rtt_ms, loss")
        return self


class RttRange(Strict):
    """Internal form of ``rtt_ms: [low, high]``."""

    low: RttMs
    high: RttMs


def _rtt(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        if len(value) != 2 or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value):
            raise ValueError("an RTT range is a list of two numbers, [low, high]")
        if value[0] > value[1]:
            raise ValueError(f"an RTT range is [low, high], but {value[0]:g} > {value[1]:g}")
    return value


RttValue = RttMs | Annotated[list[RttMs], Field(min_length=2, max_length=2)]


class Network(Strict):
    """The dumbbell: one bottleneck, a base RTT, what its queue does, what goes wrong on the path."""

    rate_mbit: Annotated[float, Field(gt=0, le=100_000)]
    rtt_ms: RttValue = Field(description="base RTT; [low, high] is drawn uniformly per flow and seed")
    buffer: Buffer
    qdisc: Qdisc = Qdisc()
    loss: Probability = 0.0
    jitter: Jitter | None = None
    changes: list[Change] = []

    @model_validator(mode="after")
    def _range(self) -> Network:
        _rtt(self.rtt_ms)
        return self

    @property
    def mean_rtt_ms(self) -> float:
        """Base RTT in ms; the mean of a range."""
        return sum(self.rtt_ms) / 2 if isinstance(self.rtt_ms, list) else self.rtt_ms

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product in bytes: rate_mbit x (mean) rtt_ms."""
        return self.rate_mbit * 1e6 * self.mean_rtt_ms * 1e-3 / 8

    @property
    def buffer_bytes(self) -> int:
        """Bottleneck buffer in bytes, at least one frame."""
        if self.buffer.bdp is not None:
            return max(FRAME_BYTES, round(self.buffer.bdp * self.bdp_bytes))
        if self.buffer.bytes is not None:
            return self.buffer.bytes
        assert self.buffer.packets is not None
        return self.buffer.packets * FRAME_BYTES


class Hosts(Strict):
    """Settings of the end hosts."""

    pacing: Literal["internal", "fq"] = Field("internal", description="TCP's own pacing timer, or the fq qdisc")
    segmentation: Annotated[Literal["off", "nic"], Switch] = Field(
        "off",
        description="off: TCP sends single packets; nic: it builds segments of up to 64 KiB, cut at the sender's interface",
    )
    ecn: Annotated[Literal["off", "on"], Switch] = "off"
    rmem_max_bytes: Annotated[int, Field(ge=4096)] | None = Field(None, description="default: never the limit")
    wmem_max_bytes: Annotated[int, Field(ge=4096)] | None = Field(None, description="default: never the limit")


class Traffic(Strict):
    """Short flows that come and go, in place of long ones (bbrlab/short_flows.py)."""

    mode: Literal["replay", "collapsed", "synthetic"] = Field(
        "replay", description="with its pauses; each flow at once; or sizes and interarrival times drawn independently"
    )
    trace: str = Field("model", description="model, or a file made by: bbrlab traffic CAPTURE.pcap --out FILE.csv")
    offered_mbit: Positive = Field(1250.0, description="mean load of the model")
    senders: Annotated[int, Field(ge=1, le=16)] = Field(2, description="hosts that take turns in sending a flow")

    @field_validator("trace")
    @classmethod
    def _there(cls, trace: str) -> str:
        if trace != "model" and not Path(trace).is_file():
            raise ValueError(
                f"'{trace}' is not a file (make one with: bbrlab traffic CAPTURE.pcap --out FILE.csv) and not 'model'"
            )
        return trace


class Flow(Strict):
    """A group of equal flows, or of short flows (``traffic``)."""

    cca: Cca
    count: Annotated[int, Field(ge=1, le=1000)] = 1
    start_s: NonNegative = Field(0.0, description="when iperf3 starts; its handshake takes about six RTTs")
    stop_s: Positive | None = Field(None, description="default: the end of the run")
    bytes: Annotated[int, Field(gt=0)] | None = Field(None, description="size of each flow; default: unlimited")
    rtt_ms: RttValue | None = Field(None, description="default: network.rtt_ms")
    direction: Literal["forward", "reverse"] = "forward"
    traffic: Traffic | None = Field(None, description="short flows in place of count long ones")
    params: dict[str, int | float | str | bool] = Field({}, description="module parameters of the CCA")

    @field_validator("params")
    @classmethod
    def _ecn_is_a_word(cls, params: dict[str, Any]) -> dict[str, Any]:
        """YAML reads a bare on or off as a truth value; the modules' ``ecn`` is one of three words."""
        if isinstance(params.get("ecn"), bool):
            return params | {"ecn": "on" if params["ecn"] else "off"}
        return params

    @model_validator(mode="after")
    def _consistent(self) -> Flow:
        _rtt(self.rtt_ms)
        if self.stop_s is not None and self.stop_s <= self.start_s:
            raise ValueError(f"stop_s {self.stop_s} must be after start_s {self.start_s}")
        if self.traffic is not None:
            for key, plain in (
                ("count", 1),
                ("bytes", None),
                ("start_s", 0.0),
                ("stop_s", None),
                ("direction", "forward"),
            ):
                if getattr(self, key) != plain:
                    raise ValueError(f"{key} has no meaning for short flows (traffic); leave it out")
            if isinstance(self.rtt_ms, list):
                raise ValueError("rtt_ms of short flows (traffic) is one number")
        for name, value in self.params.items():
            if not name.isidentifier():
                raise ValueError(f"params: '{name}' is not a parameter name")
            if isinstance(value, str) and not PLAIN_WORD.fullmatch(value):
                raise ValueError(f"params: {name}: '{value}' is not a plain value (letters, digits and . , : + - only)")
        return self


class Override(Strict):
    """How a scale of config/config.yaml changes one scenario."""

    skip: bool = Field(False, description="leave the figure out at this scale")
    trials: Annotated[int, Field(ge=1)] | None = None
    duration_s: Positive | None = None
    window_s: Annotated[list[NonNegative], Field(min_length=2, max_length=2)] | None = None
    cases: Annotated[list[str], Field(min_length=1)] | None = Field(None, description="these cases only")
    sweep: dict[str, Annotated[list[Any], Field(min_length=1)]] | None = None


class Scenario(Strict):
    """One experiment, or with ``cases`` and ``sweep`` a grid of them."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    paper: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")] = "none"
    figure: str = ""
    network: Network
    hosts: Hosts = Hosts()
    flows: Annotated[list[Flow], Field(min_length=1)]
    duration_s: Annotated[float, Field(gt=0, le=86_000)]
    window_s: Annotated[list[NonNegative], Field(min_length=2, max_length=2)]
    trials: Annotated[int, Field(ge=1)] = 3
    sample_hz: Annotated[float, Field(gt=0, le=1000)] = 10
    cases: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")], dict[str, Any]] = Field(
        {}, description="name: {dotted path: value}; every case is combined with the whole sweep"
    )
    sweep: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    scales: dict[str, Override] = Field({}, description="what a scale of config.yaml changes")

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        low, high = self.window_s
        if not low < high <= self.duration_s:
            raise ValueError(
                f"window_s {self.window_s} must lie within the run: 0 <= start < end <= {self.duration_s:g} s"
            )
        for i, flow in enumerate(self.flows):
            if flow.params.get("ecn", "off") != "off" and self.hosts.ecn == "off":
                raise ValueError(
                    f"flows.{i}.params.ecn '{flow.params['ecn']}' would have no effect: the hosts do not negotiate ECN "
                    "(set hosts.ecn: on)"
                )
            for key in ("start_s", "stop_s"):
                value = getattr(flow, key)
                if value is not None and value > self.duration_s:
                    raise ValueError(f"flows.{i}.{key} {value:g} is after the end of the run ({self.duration_s:g} s)")
            for other in self.flows[:i]:
                if other.cca == flow.cca and other.params != flow.params:
                    raise ValueError(
                        f"flows.{i}.params: module parameters hold for a whole kernel, so every {flow.cca} group "
                        f"needs the same ones (found {other.params} and {flow.params})"
                    )
            if flow.traffic is not None and isinstance(flow.rtt_ms or self.network.rtt_ms, list):
                raise ValueError(f"flows.{i}.traffic: short flows need one rtt_ms, not a range")
        for i, change in enumerate(self.network.changes):
            if change.at_s > self.duration_s:
                raise ValueError(f"network.changes.{i}.at_s {change.at_s:g} is after the end of the run")
        jitter = self.network.jitter
        if jitter and jitter.group is not None and jitter.group >= len(self.flows):
            raise ValueError(f"network.jitter.group {jitter.group} does not exist (groups 0 to {len(self.flows) - 1})")
        return self


GRID = {"cases", "sweep", "scales"}  # what makes many points of one scenario
NOT_DECISIVE = {"name", "paper", "figure", "trials", *GRID}  # two points that differ in these only have one outcome
CASE = "case"


class Point:
    """One point of a scenario's grid: a scenario without ``cases`` and ``sweep`` plus what was chosen from them.

    Attributes:
        scenario: the scenario with the values put in.
        values: {"case": its name, dotted path: value}, in the sweep's order; without cases only the paths.
    """

    def __init__(self, scenario: Scenario, values: dict[str, Any]):
        self.scenario = scenario
        self.values = values

    @property
    def fingerprint(self) -> str:
        """Hash of all that decides a run's outcome, apart from kernel and seed (not: name, paper, figure, trials)."""
        content: dict[str, Any] = self.scenario.model_dump(exclude=NOT_DECISIVE)
        for flow in content["flows"]:
            if flow["traffic"] is None:
                del flow["traffic"]
            elif flow["traffic"]["trace"] != "model":
                flow["traffic"]["trace"] = hashlib.sha256(Path(flow["traffic"]["trace"]).read_bytes()).hexdigest()
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]

    @functools.cached_property
    def conditions(self) -> dict[str, Any]:
        """What the point is, in the same words for every figure (docs/results.md)."""
        network = self.scenario.network
        return {
            "rate_mbit": network.rate_mbit,
            "base_rtt_ms": network.mean_rtt_ms,
            "buffer_bytes": network.buffer_bytes,
            "buffer_bdp": network.buffer_bytes / network.bdp_bytes,
            "qdisc": network.qdisc.kind,
            "random_loss": network.loss,
            "duration_s": self.scenario.duration_s,
            "window_start_s": self.scenario.window_s[0],
            "window_end_s": self.scenario.window_s[1],
        }

    @functools.cached_property
    def traits(self) -> dict[str, Any]:
        """What a point may be chosen by: conditions, case, swept values."""
        return self.conditions | self.values

    @property
    def label(self) -> str:
        """A folder name: the swept values in words and the fingerprint."""
        words = [f"{k.removeprefix('network.')}={_word(v)}" for k, v in self.values.items()]
        return ",".join([*words, self.fingerprint])


def _word(value: Any) -> str:
    text = json.dumps(value, sort_keys=True).replace('"', "") if isinstance(value, (dict, list)) else str(value)
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text)


def parse_value(text: str) -> Any:
    """The YAML value of ``text`` as given on a command line."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def read_yaml(path: Path) -> Any:
    """The content of a YAML file. UserError with line and column if it is not YAML or cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        try:
            return yaml.load(text, Loader=_FastUniqueLoader)
        except yaml.YAMLError:  # the other parser says more exactly where
            return yaml.load(text, Loader=_UniqueLoader)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give the path of a scenario file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a UTF-8 text file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UserError(f"{path}{where}: not valid YAML: {getattr(error, 'problem', error)}") from None


SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where PyYAML was built with it


class _Unique:
    """YAML allows a key twice and keeps the last; a scenario file must not."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        loader: Any = self
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
        for position, (key_node, _) in enumerate(node.value):
            if keys[position] in keys[:position]:
                problem = f"key '{keys[position]}' stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)  # type: ignore[misc]
        return mapping


class _UniqueLoader(_Unique, yaml.SafeLoader):
    pass


class _FastUniqueLoader(_Unique, SafeLoader):  # type: ignore[misc]
    pass


class Lines:
    """The line of each field of a YAML file, for messages."""

    def __init__(self, path: Path):
        self.root = yaml.compose(path.read_text(encoding="utf-8"), Loader=SafeLoader)

    def of(self, parts: Iterable[Any]) -> int:
        """The line of the field at ``parts``, or of the innermost one around it that is there."""
        node, line = self.root, 1
        for part in parts:
            if isinstance(node, yaml.MappingNode):
                found = next(((k, v) for k, v in node.value if k.value == str(part)), None)
                if found is None:
                    break
                line, node = found[0].start_mark.line + 1, found[1]
            elif isinstance(node, yaml.SequenceNode) and str(part).isdigit() and int(part) < len(node.value):
                node = node.value[int(part)]
                line = node.start_mark.line + 1
            else:
                break
        return int(line)


def validate(content: Any, where: str, lines: Lines | None = None) -> Scenario:
    """A Scenario from a dictionary. UserError naming ``where``, each wrong field, its value and what would be valid.

    Args:
        content: the dictionary.
        where: what to call it, such as its file.
        lines: of that file, to name the line as well.
    """
    if not isinstance(content, dict):
        raise UserError(f"{where}: a scenario is a mapping of keys to values; see config/README.md")
    try:
        return Scenario.model_validate(content)
    except ValidationError as error:
        told = (_explain(f"{where}:{lines.of(e['loc'])}" if lines else where, e, content) for e in error.errors())
        raise UserError("\n".join(dict.fromkeys(told))) from None


def _explain(where: str, error: Any, content: Any) -> str:
    known = [p for p in error["loc"] if not (isinstance(p, str) and ("[" in p or p in {"float", "int", "str", "bool"}))]
    path = ".".join(str(p) for p in known)
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key '{path}'{_suggest(path, content)}"
    if error["type"] == "missing":
        return f"{where}: '{path}' is missing"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error":
        return f"{where}: {path + ': ' if path else ''}{message}"
    return f"{where}: {path} = {_short(error['input'])}: {message[0].lower() + message[1:]}"


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _suggest(path: str, content: Any) -> str:
    import difflib

    model: Any = Scenario
    parts = path.split(".")
    for part in parts[:-1]:
        if part.isdigit():
            continue
        inner = model.model_fields.get(part)
        found = [m for m in _MODELS if inner and m.__name__ in str(inner.annotation)]
        model = found[0] if found else model
    names = list(model.model_fields)
    close = difflib.get_close_matches(parts[-1], names, 1)
    return f"; did you mean '{close[0]}'?" if close else f" (valid here: {', '.join(names)})"


_MODELS = (Network, Buffer, Qdisc, Jitter, Change, Hosts, Flow, Traffic, Override)


def assign(content: Any, path: str, value: Any, where: str) -> None:
    """Put ``value`` at dotted ``path`` of a raw scenario. UserError if the path cannot exist in a scenario."""
    parts = path.split(".")
    target = content
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        so_far = ".".join(parts[: depth + 1])
        if isinstance(target, list):
            if not part.isdigit() or int(part) >= len(target):
                count = len(target)
                raise UserError(f"{where}: path '{path}' does not exist: '{so_far}' is not one of 0 to {count - 1}")
            if last:
                target[int(part)] = value
            else:
                target = target[int(part)]
        elif isinstance(target, dict):
            if last:
                if parts[:-1] == ["network", "buffer"]:
                    target.clear()  # bdp, bytes and packets exclude each other
                target[part] = value
            else:
                if target.get(part) is None:
                    target[part] = {}
                target = target[part]
        else:
            raise UserError(f"{where}: path '{path}' does not exist: '{'.'.join(parts[:depth])}' holds a single value")


def load(path: Path, overrides: dict[str, Any] | None = None, case: str | None = None) -> Scenario:
    """Read, override and check a scenario file.

    Args:
        path: the YAML file.
        overrides: {dotted path: value}; a path that is swept becomes a fixed value.
        case: put this case's values in, before the overrides; the others are gone.

    Raises:
        UserError: naming file, field, value and what would be valid.
    """
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: a scenario is a mapping of keys to values; see config/README.md")
    content = copy.deepcopy(content)
    if case is not None:
        cases = content.pop("cases", {})
        if not isinstance(cases, dict) or case not in cases:
            known = ", ".join(cases) if isinstance(cases, dict) and cases else "none"
            raise UserError(f"--case {case}: {path} has no such case (it has: {known})")
        overrides = {**(cases[case] or {}), **(overrides or {})}
        content.get("scales", {}).clear()
    for key, value in (overrides or {}).items():
        assign(content, key, value, f"--set {key}={value}")
        if isinstance(content.get("sweep"), dict):
            content["sweep"].pop(key, None)
    scenario = validate(content, str(path), None if overrides else Lines(path))
    points(scenario, str(path))  # every point of the sweep must be valid, too
    return scenario


def points(scenario: Scenario, where: str = "scenario") -> list[Point]:
    """All points of the sweep, the last path varying fastest. UserError for a path or value that is not valid."""
    base = scenario.model_dump(exclude=GRID, exclude_unset=True)
    found = []
    for case, *combination in itertools.product(scenario.cases or [None], *scenario.sweep.values()):
        chosen = {} if case is None else {CASE: case}
        swept = dict(zip(scenario.sweep, combination, strict=True))
        changes = {} if case is None else scenario.cases[case]
        for path in changes.keys() & swept.keys():
            raise UserError(f"{where}: '{path}' is both in cases.{case} and in sweep; keep one")
        content = copy.deepcopy(base)
        for path, value in (changes | swept).items():
            if path.split(".")[0] in NOT_DECISIVE:
                raise UserError(f"{where}: '{path}' cannot differ among the points of one scenario")
            assign(content, path, copy.deepcopy(value), f"{where}: {'sweep' if path in swept else f'cases.{case}'}")
        at = ", ".join(f"{k}={v}" for k, v in (chosen | swept).items())
        found.append(Point(validate(content, f"{where}{': sweep at ' + at if at else ''}"), chosen | swept))
    return found


def base_point(scenario: Scenario) -> Point:
    """The scenario as written, with its sweep left out."""
    return Point(validate(scenario.model_dump(exclude=GRID, exclude_unset=True), scenario.name), {})
