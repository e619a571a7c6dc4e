"""The guest's main program: reads plan.json, builds the dumbbell, runs the flows, samples, writes what it saw.

Usage: guest.py OUT_DIR    (OUT_DIR/plan.json goes in; samples.raw, report.json and the iperf3 logs come out)
"""

import fcntl
import functools
import json
import os
import signal
import socket
import sys
import time

import calibration
import sampler as sampling
from dumbbell import (
    ETHTOOL_GET,
    GRO_TIMER,
    Dumbbell,
    SetupError,
    feature_is_on,
    freeze_open_vswitch,
    interface_file,
    open_vswitch_runs,
    read,
    stop_open_vswitch,
)
from ip_version import family_of, is_ipv6
from namespaces import network_of
from netlink import Netlink, datapath_misses
from settings import kernel_settings
from traffic import Traffic

HEARTBEAT_NS = 1_000_000_000
# The experiment starts at a round instant of the monotonic clock, so that a set-up step more or less shifts nothing.
START_GRID_NS = 10_000_000_000
FIRST_START_NS = 40_000_000_000
# Long enough for what follows the first packets: ARP confirms its entries after 5 s, Open vSwitch revises its flows.
SETTLE_S = 10
RNDRESEEDCRNG = 0x5207
SETS = "/sys/module/tcp_%s/parameters/sets"


def say(console, text):
    """One line for the host: it is both the progress display and the sign of life for the watchdog."""
    console.write(text + "\n")
    console.flush()


def restart_random_numbers():
    """Begin the kernel's random numbers anew from the run's seed (kernels/patches/um/0002).

    What the set-up drew, which differs between versions of Debian, then makes no difference to the experiment.
    """
    with open("/dev/urandom", "rb") as file:
        fcntl.ioctl(file, RNDRESEEDCRNG)


def set_clock_target(now_ns, virtual):
    """The next round instant at which the experiment may start."""
    if not virtual:
        return now_ns // HEARTBEAT_NS * HEARTBEAT_NS + 2 * HEARTBEAT_NS
    return max(FIRST_START_NS, -(-now_ns // START_GRID_NS) * START_GRID_NS)


def sample_instants(plan):
    """All instants (ns since the start) at which a sample is due: the grid, the window's edges, the end."""
    interval = 1_000_000_000 / plan["sample_hz"]
    count = int(plan["duration_ns"] / interval)
    grid = {round(k * interval) for k in range(count + 1)}
    return sorted(grid | set(plan["window_ns"]) | {plan["duration_ns"]})


def rate_watches(plan, limiters):
    """(when, what to do): before each change of the rate its limiter begins to note which packets leave."""
    found = []
    for limiter in limiters:
        rate_bps, earliest_ns = limiter.first_rate_bps, 0
        for change in sorted(plan["changes"], key=lambda c: c["at_ns"]):
            if change["rate_bps"] is not None:
                found.append((max(earliest_ns, change["at_ns"] - limiter.watch_ns(rate_bps)), limiter.watch))
                rate_bps, earliest_ns = change["rate_bps"], change["at_ns"]
    return found


def run(plan, dumbbell, sampler, traffic, console, start_ns=None):
    """The experiment itself, from ``start_ns`` on (default: soon). Returns the monotonic instant at which it started, and what failed of the short flows."""
    samples = sample_instants(plan)
    limiters = list(dumbbell.limiters.values())
    steps = [(c["at_ns"], functools.partial(dumbbell.change, c)) for c in plan["changes"]]
    steps = sorted(steps + rate_watches(plan, limiters), key=lambda step: step[0])  # at one instant changes come first
    start_ns = start_ns or set_clock_target(time.monotonic_ns(), plan["virtual"])
    say(console, "bbrlab start %d" % start_ns)
    if "opportunities" in plan:
        dumbbell.opportunities.start(start_ns)
    traffic.start_short_flows(start_ns)
    clock = sampling.Clock()
    if plan["virtual"]:
        restart_random_numbers()  # the calibration drew, too
    clock.sleep_until(start_ns)
    position, beat = 0, 0
    while position < len(samples):
        due = [samples[position]]
        due += [at_ns for at_ns, _ in steps[:1]]
        due += [limiter.due_ns - start_ns for limiter in limiters if limiter.due_ns is not None]
        due += [t for t in (traffic.next_start_ns(), traffic.next_stop_ns()) if t is not None]
        instant = min(due)
        clock.sleep_until(start_ns + instant)
        for limiter in limiters:
            if limiter.due_ns is not None and limiter.due_ns - start_ns <= instant:
                limiter.release()
        while steps and steps[0][0] <= instant:
            steps.pop(0)[1]()
        if samples[position] <= instant:
            sampler.take(time.monotonic_ns() - start_ns)
            position += 1
        traffic.start_due(instant)
        traffic.stop_due(instant)
        if instant >= beat:
            if traffic.reap():
                sampler.bury(instant)
            say(console, "bbrlab at %.3f" % (instant / 1e9))
            beat = instant + HEARTBEAT_NS
    traffic.reap()
    sampler.bury(plan["duration_ns"])
    return start_ns, traffic.stop_short_flows()


def without_long_flows(plan):
    """Which hosts, by their place, have nothing but short flows: their many sockets are not sampled."""
    busy = {t[end] for t in plan["transfers"] for end in ("client", "server")}
    return {i for i, host in enumerate(plan["hosts"]) if host["name"] not in busy}


def module_parameters(names):
    """{CCA: {parameter: value}} as the kernel has them now."""
    found = {}
    for name in names:
        folder = "/sys/module/tcp_%s/parameters" % name
        found[name] = {p: read(folder + "/" + p) for p in sorted(os.listdir(folder))} if os.path.isdir(folder) else {}
    return found


def add_parameter_sets(sets):
    """Ask the modules for the plan's parameter sets. SetupError if a module refuses one."""
    for entry in sets:
        words = ["%s=%s" % item for item in entry["values"].items()]
        try:
            with open(SETS % entry["module"], "w", encoding="ascii") as file:
                file.write(" ".join([entry["name"], entry["base"], *words]))
        except OSError as error:
            what = (entry["base"], " ".join(words), error.strerror)
            raise SetupError("the kernel refused the parameters of %s: %s (%s)" % what) from None


def parameters_of_sets(sets):
    """{parameter set: {parameter: value}} as the modules have them now."""
    lines = []
    for module in sorted({entry["module"] for entry in sets}):
        lines += read(SETS % module).splitlines()
    wanted = {entry["name"] for entry in sets}
    found = {line.split()[0]: line.split()[1:] for line in lines}
    return {name: dict(word.split("=", 1) for word in found[name]) for name in sorted(wanted & set(found))}


def check_ccas(names):
    """SetupError if the kernel lacks a CCA that was built into it: its module refused its parameters."""
    missing = set(names) - set(read("/proc/sys/net/ipv4/tcp_available_congestion_control").split())
    if missing:
        raise SetupError("the kernel refused the parameters of %s: unknown value, or out of range" % ", ".join(missing))


def interface_drops(dumbbell):
    """What every qdisc and device of the topology dropped, the bottleneck's own queue included."""
    route = Netlink(os.getpid())
    listing = list(route.qdiscs())
    route.socket.close()
    for host in dumbbell.hosts.values():
        listing += [qdisc for qdisc in host.netlink.qdiscs() if qdisc[0] != "lo"]
    return [dict(zip(("device", "kind", "handle", "packets", "drops"), qdisc)) for qdisc in listing]


def listen_drops(dumbbell):
    """{host: packets that IP or TCP threw away} where a healthy run has none."""
    found = {}
    for name, host in dumbbell.hosts.items():
        with network_of(host.pid):
            text = read("/proc/self/net/netstat")
        rows = [line.split() for line in text.splitlines()]
        counters = dict(zip(rows[0], rows[1])), dict(zip(rows[2], rows[3]))
        found[name] = {
            key: int(counters[0].get(key, 0))
            for key in (
                "TCPBacklogDrop",
                "TCPRcvQDrop",
                "PFMemallocDrop",
                "TCPMinTTLDrop",
                "ListenOverflows",
                "PruneCalled",
            )
        }
    return found


def received(dumbbell):
    """{host: offloads of its interface, packets that it received and lost, segments that TCP got}."""
    found = {}
    for name, host in dumbbell.hosts.items():
        device = name + "-eth0"
        with network_of(host.pid), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            features = {name: feature_is_on(sock, device, command) for name, command in ETHTOOL_GET.items()}
            devices = dict(line.split(":", 1) for line in read("/proc/self/net/dev").splitlines()[2:])
            rows = [line.split() for line in read("/proc/self/net/snmp").splitlines() if line.startswith("Tcp:")]
        counters = {name.strip(): fields.split() for name, fields in devices.items()}[device]
        found[name] = {
            **features,
            "gro_timer_ns": int(read(interface_file(host.pid, device, GRO_TIMER))),
            "packets": int(counters[1]),
            "drops": int(counters[3]),
            "tcp_segments": int(dict(zip(*rows))["InSegs"]),
        }
        if is_ipv6(dumbbell.plan):
            found[name].update(packets_of_versions(host))
    return found


def packets_of_versions(host):
    """How many packets of each version of IP a host got, merged ones counted as one."""
    with network_of(host.pid):
        rows = [line.split() for line in read("/proc/self/net/snmp").splitlines() if line.startswith("Ip:")]
        of_ipv6 = dict(line.split() for line in read("/proc/self/net/snmp6").splitlines())
    return {"ipv4_packets": int(dict(zip(*rows))["InReceives"]), "ipv6_packets": int(of_ipv6["Ip6InReceives"])}


def interrupted(signum, frame):
    """Handler of SIGTERM: what this program has built is taken down on its way out."""
    raise SystemExit(128 + signum)


def main(out):
    """Run the plan in ``out``. Returns the exit status."""
    with open(out + "/plan.json", encoding="utf-8") as file:
        plan = json.load(file)
    sampling.be_punctual()
    dumbbell = traffic = None
    switch_is_ours = not open_vswitch_runs()
    if not plan["own_machine"]:
        signal.signal(signal.SIGTERM, interrupted)
    console = open("/dev/console", "w", encoding="utf-8") if plan["own_machine"] else sys.stdout  # noqa: SIM115
    try:
        check_ccas(plan["ccas"])
        add_parameter_sets(plan["parameter_sets"])
        if "prompt" in plan:
            import play  # which other runs need not wait for

            play.mount_terminals()
        say(console, "bbrlab stage mininet")
        dumbbell = Dumbbell(plan, switch_is_ours, lambda: say(console, "bbrlab alive"))
        dumbbell.build()
        traffic = Traffic(dumbbell, plan, out)
        traffic.start_servers()
        pids = [dumbbell.hosts[h["name"]].pid for h in plan["hosts"]]
        queues = [b["device"] for b in plan["bottlenecks"]]
        left_out, family = without_long_flows(plan), family_of(plan)
        sampler = sampling.Sampler(out + "/samples.raw", pids, queues, plan["trace_acks"], left_out, family)
        say(console, "bbrlab stage calibration")
        report = {"kernel": os.uname().release, "kernel_version": os.uname().version}
        pairs = [(p["host"], p["address"]) for p in plan["pings"]]
        if plan["virtual"]:
            calibration.ping_ms(dumbbell, pairs, 1)
            time.sleep(SETTLE_S)
            freeze_open_vswitch()
            restart_random_numbers()
            # In real time a process that nothing interrupts would keep the others from running.
            sampling.run_in_order(process.pid for process in traffic.servers)
            clock = sampling.Clock()
            clock.sleep_until(-(-time.monotonic_ns() // START_GRID_NS) * START_GRID_NS)
            dumbbell.renew_queues()
        report["ping_ms"] = calibration.ping_ms(dumbbell, pairs)
        if "probes" in plan:
            import data_path  # which other runs need not wait for

            report["data_delays_us"] = data_path.delays_us(dumbbell)
        report["burst"] = [
            calibration.burst(dumbbell, sampler, i, link) if link["burst"] else None
            for i, link in enumerate(plan["bottlenecks"])
        ]
        dumbbell.renew_queues(loss=plan["loss"])
        if "opportunities" in plan:
            import opportunities  # which other runs need not wait for

            dumbbell.opportunities = opportunities.Links(dumbbell, plan, out)
        if "policers" in plan:
            import policer  # which other runs need not wait for

            dumbbell.tc(policer.commands(plan["policers"]))
        if "capture" in plan:
            import capture  # which other runs need not wait for

            sampler.capture = capture.Capture(plan, dumbbell, out)
        before, missed = interface_drops(dumbbell), datapath_misses() if plan["virtual"] else 0
        received_before = received(dumbbell)
        say(console, "bbrlab stage experiment")
        if "prompt" in plan:
            start_ns = set_clock_target(time.monotonic_ns(), virtual=False)
            short_failures = []
            report["duration_ns"] = play.run(plan, dumbbell, sampler, traffic, out, start_ns, lambda t: say(console, t))
            report["start_ns"] = start_ns
        else:
            start_ns = None
            if "several" in plan:
                import several  # which other runs need not wait for

                several.hand_over(plan, dumbbell)
                start_ns = several.agree_on_start(plan, dumbbell)
            report["start_ns"], short_failures = run(plan, dumbbell, sampler, traffic, console, start_ns)
        # Before anything waits, so that they are the counters at the end of the experiment.
        report["qdiscs_before"], report["qdiscs"] = before, interface_drops(dumbbell)
        if dumbbell.path_steps is not None:
            report["path_steps"] = dumbbell.path_steps.end()
        report["host_drops"] = listen_drops(dumbbell)
        report["received_before"], report["received"] = received_before, received(dumbbell)
        report["switch_misses"] = datapath_misses() - missed if plan["virtual"] else 0
        if "late" in plan:
            report["late"] = data_path.late_counts(plan["late"]["devices"])
        if "policers" in plan:
            report["policers"] = policer.counters(plan["policers"])
        sampler.close()
        if sampler.capture is not None:
            report["capture"] = sampler.capture.close()
        report["settings"] = kernel_settings(dumbbell, plan)
        traffic.await_reports()
        report["parameters"] = module_parameters(plan["ccas"] + ["ack_records"] * plan["trace_acks"])
        report["parameters"].update(parameters_of_sets(plan["parameter_sets"]))
        report["congestion_control"] = read("/proc/sys/net/ipv4/tcp_available_congestion_control").split()
        report["traffic_failures"] = traffic.failures() + short_failures
        with open(out + "/report.json", "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        say(console, "bbrlab done")
        return 0
    except (SetupError, OSError) as error:
        print("guest: %s" % error, file=sys.stderr)
        say(console, "bbrlab failed %s" % str(error).splitlines()[0])
        return 3
    finally:
        if not plan["own_machine"]:  # a virtual machine is simply switched off
            if traffic is not None:
                traffic.stop()
            if dumbbell is not None:
                dumbbell.stop()
            if switch_is_ours:
                stop_open_vswitch()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
