"""iperf3 servers and clients: one pair of processes per transfer of the plan.

iperf3 is Debian's, unmodified; a preloaded library keeps it from waking up more often than it has work (see
iperf3_patience.c). Without it a run takes four times as long.
"""

import contextlib
import json
import os
import signal
import subprocess

from ip_version import is_ipv6

# A server gives up a stream from which nothing came for this long; a flow that stalls is a result. iperf3's longest.
RECEIVE_TIMEOUT_MS = 86_400_000
REPORT_S = 1  # an interrupted client needs no answer to end
BLOCK_BYTES = 1 << 20  # the longest block that iperf3 allows: the fewest reads and writes


def block_bytes(transfer_bytes):
    """The block length with which iperf3 -n overshoots ``transfer_bytes`` by less than one byte per block."""
    blocks = -(-transfer_bytes // BLOCK_BYTES)
    return -(-transfer_bytes // blocks)


class Traffic:
    """Starts, watches and ends the transfers of a plan on a running dumbbell."""

    def __init__(self, dumbbell, plan, out):
        self.dumbbell, self.plan, self.out = dumbbell, plan, out
        self.env = dict(os.environ)
        self.iperf3 = ["iperf3", "-6" if is_ipv6(plan) else "-4"]
        if plan["preload"]:
            self.env["LD_PRELOAD"] = plan["preload"]
        self.servers, self.clients, self.done, self.short = [], {}, {}, []
        self.stopping = set()
        elsewhere = plan["several"]["elsewhere"] if "several" in plan else ()  # hosts that send from another machine
        own = [t for t in plan["transfers"] if t["client"] not in elsewhere]
        self.waiting = sorted(own, key=lambda t: t["start_ns"])

    def start_servers(self):
        """One single-use server per transfer, each on its own port."""
        for transfer in self.plan["transfers"]:
            self.start_server(transfer)

    def start_server(self, transfer):
        """The server of one transfer."""
        log = open("%s/server-%d.log" % (self.out, transfer["id"]), "wb")  # noqa: SIM115 - the child's output
        env = dict(self.env, BBRLAB_RECEIVE_LOWAT=str(transfer["receive_lowat_bytes"]))
        argv = [*self.iperf3, "-s", "-1", "-i", "0", "-p", str(transfer["port"]),
                "--rcv-timeout", str(RECEIVE_TIMEOUT_MS)]  # fmt: skip
        self.servers.append(self.dumbbell.start(transfer["server"], argv, stdout=log, stderr=log, env=env))

    def start_short_flows(self, start_ns):
        """Start the receivers and senders of short flows, which begin at ``start_ns`` of the monotonic clock."""
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "short_flows.py")
        for entry in self.plan["short_flows"]:
            roles = [("receive", 0, entry["server"])] + [("send", i, c) for i, c in enumerate(entry["clients"])]
            for role, index, host in roles:
                argv = [
                    "python3",
                    program,
                    role,
                    self.out + "/plan.json",
                    str(entry["group"]),
                    str(index),
                    str(start_ns),
                ]
                log = open("%s/short-%d-%s-%d.err" % (self.out, entry["group"], role, index), "wb")  # noqa: SIM115
                name = "short flows of group %d, %s" % (entry["group"], role)
                self.short.append((name, self.dumbbell.popen(host, argv, stdout=log, stderr=log)))

    def stop_short_flows(self):
        """End them and wait until their records are written. Returns (which, words) of each that failed."""
        for _, process in self.short:
            process.terminate()
        codes = [(name, process.wait()) for name, process in self.short]
        return [(name, "short_flows.py ended with %d" % code) for name, code in codes if code]

    def next_start_ns(self):
        """When the next transfer is due, or None."""
        return self.waiting[0]["start_ns"] if self.waiting else None

    def start_due(self, now_ns):
        """Start the clients whose time has come."""
        while self.waiting and self.waiting[0]["start_ns"] <= now_ns:
            self.start_client(self.waiting.pop(0))

    def start_client(self, transfer):
        """The client of one transfer, whose server waits for it."""
        argv = [*self.iperf3, "-J", "-i", "0", "-c", transfer["server_ip"], "-p", str(transfer["port"]),
                "-C", transfer["cca"], "-P", str(transfer["streams"])]  # fmt: skip
        if transfer["bytes"] is not None:
            argv += ["-n", str(transfer["bytes"]), "-l", str(block_bytes(transfer["bytes"]))]
        else:
            # Ended to the nanosecond by stop_due(); -t only must not end it sooner (iperf3 allows 86400 s).
            argv += ["-t", "86400", "-l", str(BLOCK_BYTES)]
        env = dict(self.env)
        if transfer["bytes"] is not None:
            env["BBRLAB_FINITE"] = "1"
        if "together" in transfer:
            env["LD_PRELOAD"] = " ".join(filter(None, (env.get("LD_PRELOAD"), transfer["together"])))
            env["BBRLAB_TOGETHER"] = str(transfer["streams"])
        log = open("%s/client-%d.json" % (self.out, transfer["id"]), "wb")  # noqa: SIM115 - the child's output
        self.clients[transfer["id"]] = (
            transfer,
            self.dumbbell.popen(transfer["client"], argv, stdout=log, stderr=log, env=env),
        )

    def next_stop_ns(self):
        """When the next running transfer must be told to stop, or None."""
        stops = [t["stop_ns"] for i, (t, _) in self.clients.items() if i not in self.stopping]
        return min(stops, default=None)

    def stop_due(self, now_ns):
        """Interrupt the clients whose time is over; iperf3 then reports and ends."""
        for transfer, _ in self.clients.values():
            if transfer["stop_ns"] <= now_ns and transfer["id"] not in self.stopping:
                self.interrupt(transfer["id"])

    def interrupt(self, number):
        """Interrupt the client of transfer ``number``."""
        self.stopping.add(number)
        process = self.clients[number][1]
        if process.poll() is None:
            process.send_signal(signal.SIGINT)

    def reap(self):
        """Collect the clients that have ended. Returns whether any has."""
        ended = [i for i, (_, process) in self.clients.items() if process.poll() is not None]
        for i in ended:
            _, process = self.clients.pop(i)
            self.done[i] = process.returncode
        return bool(ended)

    def await_reports(self):
        """Let the clients that were told to stop write what they counted: in order (sampler.py), they run while this waits."""
        for i in sorted(self.stopping & self.clients.keys()):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.clients[i][1].wait(REPORT_S)

    def stop(self):
        """End every process that is left (real-time backend; a virtual machine is simply switched off)."""
        left = self.servers + [process for _, process in self.short] + [process for _, process in self.clients.values()]
        for process in left:
            process.kill()
        for process in left:
            process.wait()

    def failures(self):
        """What went wrong: (transfer id, iperf3's own words) for each client that ended early with an error."""
        found = []
        for i, code in self.done.items():
            try:
                with open("%s/client-%d.json" % (self.out, i), encoding="utf-8") as file:
                    error = json.load(file).get("error")
            except ValueError:
                error = "iperf3 ended with %d and no report" % code
            if error and "interrupt" not in error:
                found.append((i, error))
        return found
