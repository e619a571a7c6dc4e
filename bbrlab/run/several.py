"""Runs senders of several kernels at one bottleneck: one machine for each kernel, in real time (mininet/several.py)."""

from __future__ import annotations

import copy
import shutil
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.limits import all_cores
from bbrlab.experiment.machine import process, qemu
from bbrlab.experiment.machine.strain import Gauge, Strain
from bbrlab.experiment.plan import Plan, make_plan
from bbrlab.experiment.plan_types import GuestPlan
from bbrlab.kernel.built import Kernel
from bbrlab.measure.netlink import HEAD, KIND_DESTROYED, KIND_SOCKETS, records
from bbrlab.run.guest import Machine
from bbrlab.run.memory import guest_bytes
from bbrlab.scenario.frames import IP_VERSION, MTU_BYTES
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Network

OUT_OF_STEP_S = 300  # machines wait for each other, and a slow one takes long to set up


@dataclass(frozen=True)
class Senders:
    """A machine of senders."""

    kernel: Kernel
    groups: list[int]  # whose senders are in it
    plan: GuestPlan

    @property
    def hosts(self) -> list[str]:
        """Its sending hosts."""
        return self.plan["several"]["hosts"]


# Of the path, what machines cannot meet over: {field of the network: why}.
_NOT_MET_OVER = {
    "trace": "machines meet through a link that sends before the start",
    "mtu_bytes": f"machines meet through network devices with an MTU of {MTU_BYTES}",
    "ip_version": f"machines meet over IPv{IP_VERSION}",
    "data_path": "machines agree on the start over a path that delays the ACKs alone",
    "links": "machines meet at one bottleneck",
}


def _check_path(network: Network) -> None:
    """UserError for what machines cannot meet over."""
    for name, why in _NOT_MET_OVER.items():
        if getattr(network, name) != Network.model_fields[name].default:
            raise UserError(f"--sender-kernel: {why}; leave network.{name} out")
    if network.reverse and network.reverse.grants:
        raise UserError(
            "--sender-kernel: machines agree on the start over a way back that has no grants by then; leave network.reverse.grants out"
        )


def plan_several(point: Point, seed: int, kernel: Kernel, of_group: Mapping[int, Kernel]) -> tuple[Plan, list[Senders]]:
    """The plans of all machines. UserError for an unknown group, or one that is not of long flows forward without parameters.

    Args:
        kernel: of the bottleneck, the receivers, and the senders of all other groups.
        of_group: {group: the kernel of its senders}; groups of one kernel share a machine.

    Returns:
        The plan of the machine with the bottleneck, which has all transfers, and the machines of senders.
    """
    flows = point.scenario.flows
    _check_path(point.scenario.network)
    for group in of_group:
        if not 0 <= group < len(flows):
            raise UserError(f"--sender-kernel {group}=...: {point.scenario.name} has groups 0 to {len(flows) - 1}")
        flow = flows[group]
        if flow.traffic is not None or flow.params or flow.direction != "forward":
            raise UserError(
                f"--sender-kernel {group}=...: only a group of long flows forward without params can have a kernel of its own"
            )
    kernels = list({k.key: k for k in of_group.values()}.values())
    groups = [[g for g, k in of_group.items() if k.key == kernel_.key] for kernel_ in kernels]
    machines = {g: number for number, members in enumerate(groups, 1) for g in members}

    def planned(own: Kernel) -> Plan:
        """The whole plan with this kernel's names of the algorithms, or another kernel's where it has none."""
        names = {f.cca: k.ccas[f.cca] for k in [kernel, *kernels, own] for f in flows if f.cca in k.ccas}
        return make_plan(point, seed, names, virtual=False, modules=own.modules, machines=machines)

    whole = planned(kernel)
    content = whole.content
    carried = {flow.transfer: flow.group for flow in whole.flows}
    senders_of, first = [], 1
    receiver = next(h for h in content["hosts"] if h["receives"] and h["side"] == "s2")
    for own, members in zip(kernels, groups, strict=True):
        for group in members:
            if flows[group].cca not in own.ccas:
                raise UserError(f"--sender-kernel {group}={own.name}: this kernel has no {flows[group].cca}")
        theirs = planned(own).content
        transfers = [t for t in theirs["transfers"] if carried[t["id"]] in members]
        hosts = list(dict.fromkeys(t["client"] for t in transfers))
        plan = copy.deepcopy(theirs)
        plan |= {
            "transfers": transfers, "changes": [], "ccas": sorted({t["cca"] for t in transfers}), "parameter_sets": [],
            "short_flows": [],
            "several": {"role": "senders", "hosts": hosts, "nics": list(range(first, first + len(hosts))), "elsewhere": [],
                        "receiver": receiver["name"], "meet_at": receiver["ip"], "machines": []},
        }  # fmt: skip
        first += len(hosts)
        senders_of.append(Senders(own, members, plan))
        by_id = {t["id"]: t for t in transfers}
        content["transfers"] = [by_id.get(t["id"], t) for t in content["transfers"]]
    away = [name for senders in senders_of for name in senders.hosts]
    address = {h["name"]: h["ip"] for h in content["hosts"]}
    content["several"] = {
        "role": "bottleneck", "hosts": away, "nics": [n for s in senders_of for n in s.plan["several"]["nics"]], "elsewhere": away,
        "receiver": receiver["name"], "meet_at": receiver["ip"], "machines": [address[s.hosts[0]] for s in senders_of],
    }  # fmt: skip
    content["ccas"] = sorted({t["cca"] for t in content["transfers"] if t["client"] not in away})
    return whole, senders_of


def run_several(
    machine: Machine, scratch: Path, point: Point, plan: Plan, senders: list[Senders], log: Path
) -> Strain | None:
    """Run all machines to their end, and merge the senders' files into those of the bottleneck's machine, in ``scratch/out``.

    UserError if one of them fails, with its last words.

    Args:
        machine: of the bottleneck.
        scratch: has ``out`` with its plan.
        log: of the machine of the bottleneck; the others' are appended.
    """
    cores, needed = all_cores(), len(senders) + 1
    if cores < needed:
        raise UserError(f"--sender-kernel: {needed} machines need a core each, but this process may use {cores}")
    needed_bytes = guest_bytes(point, virtual=False)
    stop = threading.Event()
    places = [scratch, *[scratch / f"senders-{i}" for i in range(1, len(senders) + 1)]]
    jobs, argvs, gauges = [], [], [Gauge() for _ in places]
    for i, place in enumerate(places):
        own = senders[i - 1] if i else None
        kernel = own.kernel if own else machine.kernel
        place.mkdir(exist_ok=True)
        (place / "guest").symlink_to(paths.GUEST_CODE)
        (place / "lib").symlink_to(machine.library)
        if own:
            (place / "out").mkdir()
            files.write_json(place / "out" / "plan.json", own.plan)
        numbers = own.plan["several"]["nics"] if own else plan.content["several"]["nics"]
        devices = [w for n in numbers for w in qemu.cable(n, *_ends(scratch, n, first=own is None))]
        job = process.Job(
            scratch=place, seed=machine.seed, memory_bytes=needed_bytes, arguments=plan.kernel_arguments if i == 0 else [],
            log=log if i == 0 else place / "log", watchdog_s=max(machine.watchdog_s, OUT_OF_STEP_S), stop=stop, gauge=gauges[i],
            on_progress=machine.on_progress if i == 0 else lambda verb, text: None, devices=tuple(devices),
            die_with_parent=machine.die_with_parent,
        )  # fmt: skip
        jobs.append(job)
        argvs.append(qemu.command(kernel, job))
    machine.on_start()
    with ThreadPoolExecutor(len(jobs)) as pool, _stopping(stop):
        running = [pool.submit(_run, job, argv, stop) for job, argv in zip(jobs, argvs, strict=True)]
        failures = [f for f in (future.exception() for future in running) if f is not None]
    for place in places[1:]:
        with open(log, "a", encoding="utf-8") as file:
            for part in (place / "log", place / "out" / "console.log"):
                if part.exists():
                    file.write(f"{place.name}, {part.name}:\n{part.read_text(encoding='utf-8', errors='replace')}")
    reported = [f for f in failures if not isinstance(f, process.Stopped)] or failures
    if reported and isinstance(reported[0], process.GuestFailed):
        raise UserError(f"{point.scenario.name}: {reported[0]}")
    if reported:
        raise reported[0]
    for own, place in zip(senders, places[1:], strict=True):
        _join(plan, own, scratch / "out", place / "out")
    strains = [s for s in (gauge.strain() for gauge in gauges) if s is not None]
    if not strains:
        return None
    waits = [s.waited for s in strains if s.waited is not None]
    return Strain(max(s.busy for s in strains), max(waits, default=None), max(s.stolen for s in strains))


def _ends(scratch: Path, number: int, *, first: bool) -> tuple[Path, Path]:
    ends = scratch / f"{number}.bottleneck", scratch / f"{number}.senders"
    return ends if first else (ends[1], ends[0])


def _run(job: process.Job, argv: list[str], stop: threading.Event) -> None:
    try:
        process.run(job, argv)
    except BaseException:
        stop.set()  # the others wait for this one
        raise


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    try:
        yield
    except BaseException:
        stop.set()
        raise


def _join(plan: Plan, own: Senders, out: Path, theirs: Path) -> None:
    """Merge a sender machine's records of its hosts into those of the bottleneck's machine."""
    index = {h["name"]: i for i, h in enumerate(plan.content["hosts"])}
    places = {index[name] for name in own.hosts}
    data = (theirs / "samples.raw").read_bytes()
    with open(out / "samples.raw", "ab") as file:
        for time_ns, source, kind, offset, length in records(data):
            if source in places and kind in (KIND_SOCKETS, KIND_DESTROYED):
                file.write(HEAD.pack(time_ns, source, kind, length) + data[offset : offset + length])
    report, other = files.read_json(out / "report.json"), files.read_json(theirs / "report.json")
    for name in own.hosts:
        for key in ("received", "received_before", "host_drops"):
            report[key][name] = other[key][name]
        report["settings"]["hosts"][name] = other["settings"]["hosts"][name]
    report["parameters"] = other["parameters"] | report["parameters"]
    report["traffic_failures"] += other["traffic_failures"]
    files.write_json(out / "report.json", report)
    for path in theirs.glob("client-*.json"):
        shutil.copy(path, out / path.name)
