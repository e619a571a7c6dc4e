"""Compatibility of a point with a kernel and a backend: algorithms, parameters, acceleration."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.experiment.machine import host
from bbrlab.experiment.machine.qemu import check_qemu
from bbrlab.kernel.build import build_kernel
from bbrlab.kernel.built import Kernel, get_kernel, has_ipv6
from bbrlab.kernel.own import OwnCca
from bbrlab.kernel.probe import kvm_fails
from bbrlab.kernel.specs import OwnSpec, load_specs
from bbrlab.kernel.steps import Say
from bbrlab.scenario.frames import IP_VERSION
from bbrlab.scenario.parameters import PARAMETERS, unknown_parameter_message
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Scenario

FOR_TESTS = "counters_start"  # a parameter that tests of our BBR need, and nobody else
L4S_OPTIONS = "l4s.config"  # of the kernels that have DualPI2 and AccECN
IPV6_OPTIONS = "ipv6.config"  # of the kernels that have IPv6
IPV6_HERE = Path("/proc/sys/net/ipv6")  # of this machine's own kernel
BACKENDS = {"uml": "um", "qemu": "x86_64", "host": None}  # and the architecture of their kernels


def kernel_for(name: str | None, backend: str, own: Sequence[OwnCca] = (), say: Say = print) -> Kernel:
    """The kernel for a backend; one with the user's own algorithms is built if needed.

    UserError for a kernel of another architecture, naming those that fit; for an algorithm that cannot be built in.

    Args:
        name: entry of kernels.yaml; default: the first that fits, the file's default before others.
        own: the user's own algorithms, beside those of the entry.
        say: gets one line per step of a build.
    """
    arch = BACKENDS[backend]
    if arch is None:
        if own:
            raise UserError(
                f"{own[0].path}: --backend host runs this machine's own kernel, into which nothing is built; use "
                "uml or qemu"
            )
        return host.host_kernel()
    specs = load_specs()
    fitting = [n for n, spec in specs.kernels.items() if spec.arch == arch]
    name = name or (specs.default if specs.default in fitting else next(iter(fitting), specs.default))
    if name in specs.kernels and name not in fitting:
        raise UserError(
            f"--backend {backend}: kernel {name} is not for it; those that are: {', '.join(fitting) or 'none'}"
        )
    if backend == "qemu":
        check_qemu()
    kernel = build_kernel(name, say=say, own=own) if own else get_kernel(name)
    return accelerated(kernel, say) if backend == "qemu" else kernel


def accelerated(kernel: Kernel, say: Say) -> Kernel:
    """A kernel for QEMU with the acceleration on this machine, which need not be the one that it was built on.

    Args:
        say: called with the reason if it is emulated.
    """
    why = kvm_fails(Path(kernel.image))
    if why:
        say(
            f"emulated, some fifty times slower than with KVM, so that only paths of a few Mbit/s are right in time: {why}"
        )
    return dataclasses.replace(kernel, acceleration="tcg" if why else "kvm")


def check_trace(kernel: Kernel) -> None:
    """UserError if a kernel keeps no records of ACKs."""
    if "kept" not in kernel.parameters.get("ack_records", []):
        raise UserError(
            f"--trace-acks, --trace-changes: the kernel {kernel.name} keeps no records of ACKs; use one of config/kernels.yaml "
            "whose patches have acks (lab-6.12 has)"
        )


def asks_for_l4s(scenario: Scenario) -> str:
    """The first field of a scenario that needs a kernel with L4S, and its value; empty if there is none."""
    network = scenario.network
    qdiscs = {
        "network.qdisc": network.qdisc,
        "network.reverse.qdisc": network.reverse.qdisc if network.reverse else None,
    }
    qdiscs |= {f"network.links.{i}.qdisc": link.qdisc for i, link in enumerate(network.links or ())}
    values: dict[str, str | None] = {}
    for at, qdisc in qdiscs.items():
        if qdisc is not None:
            # ect1 of fq_codel: elsewhere nobody sends ECT(1)
            values |= {f"{at}.kind": qdisc.kind, f"{at}.l4s_of": qdisc.l4s_of}
    values["hosts.ecn"] = scenario.hosts.ecn
    return next((f"{field} {value}" for field, value in values.items() if value in ("dualpi2", "accurate", "ect1")), "")


def _check_l4s(point: Point, kernel: Kernel) -> None:
    """UserError for L4S in a kernel of config/kernels.yaml that lacks it. For other kernels the guest reports it."""
    scenario, kernels = point.scenario, load_specs().kernels
    spec = kernels.get(kernel.name.partition("+")[0])
    if spec is None or L4S_OPTIONS in spec.options:
        return
    with_l4s = ", ".join(name for name, other in kernels.items() if L4S_OPTIONS in other.options)
    if field_and_value := asks_for_l4s(scenario):
        raise UserError(
            f"{scenario.name}: {field_and_value}: kernel {kernel.name} has none; give --kernel {with_l4s} (docs/howto/l4s.md)"
        )


def _check_ip_version(point: Point, kernel: Kernel) -> None:
    """UserError for a scenario with IPv6 and a kernel without it."""
    version = point.scenario.network.ip_version
    if version == IP_VERSION or (has_ipv6(kernel) if kernel.image else IPV6_HERE.is_dir()):
        return
    kernels = load_specs().kernels
    if not kernel.image:
        raise UserError(
            f"{point.scenario.name}: network.ip_version {version}: this machine has no IPv6 ({IPV6_HERE} is missing); load its module (modprobe ipv6), or use 4"
        )
    arch = kernels[kernel.name].arch if kernel.name in kernels else BACKENDS["uml"]
    have = ", ".join(name for name, spec in kernels.items() if IPV6_OPTIONS in spec.options and spec.arch == arch)
    raise UserError(
        f"{point.scenario.name}: network.ip_version {version}: kernel {kernel.name} has no IPv6; give --kernel with one that has ({have}), or use 4"
    )


def check_parameter_names(points: Sequence[Point], where: str) -> None:
    """UserError naming ``where`` for a parameter of one of Linux's algorithms that no kernel has: neither Linux's (PARAMETERS), nor
    any that is built. One of the user's that is not built yet may have it."""
    flows = [(i, flow) for point in points for i, flow in enumerate(point.scenario.flows) if flow.cca in PARAMETERS]
    if not any(set(flow.params) - set(PARAMETERS[flow.cca]) for _, flow in flows):
        return
    kernels = []
    for name, spec in load_specs().kernels.items():
        try:
            kernels.append(get_kernel(name))
        except UserError:
            if isinstance(spec, OwnSpec):
                return
    for i, flow in flows:
        of_kernels = [kernel.parameters.get(kernel.ccas.get(flow.cca, ""), []) for kernel in kernels]
        known = list(dict.fromkeys([*PARAMETERS[flow.cca], *(name for names in of_kernels for name in names)]))
        for name in flow.params:
            if name not in known:
                shown = [p for p in known if p != FOR_TESTS]
                raise UserError(f"{where}: flows.{i}.params.{name}: {unknown_parameter_message(flow.cca, name, shown)}")


def check_parameters(point: Point, kernel: Kernel, elsewhere: Collection[int] = ()) -> None:
    """UserError for a parameter or a profile that the kernel's CCA does not have, for groups that want one kernel-wide parameter
    differently, and for a queue or an ECN of L4S, or IPv6, that the kernel does not have.

    Args:
        elsewhere: groups whose senders have another kernel, and so no parameters (run/several.py).
    """
    _check_l4s(point, kernel)
    _check_ip_version(point, kernel)
    flows = {i: flow for i, flow in enumerate(point.scenario.flows) if i not in elsewhere}
    for i, flow in flows.items():
        module = kernel.ccas[flow.cca]
        parameters = kernel.parameters.get(module, [])
        if module not in kernel.modules and any(
            f.cca == flow.cca and f.params != flow.params for g, f in flows.items() if g < i
        ):
            raise UserError(
                f"{point.scenario.name}: flows.{i}.params: the parameters of {flow.cca} hold for the whole kernel "
                f"{kernel.name}, so every {flow.cca} group needs the same ones"
            )
        for name in flow.params:
            if name not in parameters:
                raise UserError(
                    f"{point.scenario.name}: flows.{i}.params.{name}: "
                    + unknown_parameter_message(
                        flow.cca, name, [p for p in parameters if p != FOR_TESTS], f" in kernel {kernel.name}"
                    )
                )
        if "profile" in flow.params and module in kernel.modules:
            profiles = kernel.profiles.get(module, [])
            if profiles and flow.params["profile"] not in profiles:
                raise UserError(
                    f"{point.scenario.name}: flows.{i}.params.profile: {flow.cca} has no profile '{flow.params['profile']}' in kernel "
                    f"{kernel.name} (it has: {', '.join(profiles)})"
                )
