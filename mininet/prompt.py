"""Mininet's prompt, with commands for what a scenario is made of: flows, rate, RTT, loss."""

import difflib
import json
import sys
import time

from mininet.cli import CLI
from mininet.log import error, output
from play import RefusedError, listens, show

# Mininet's commands that change nothing: they look, or run other commands, which are seen by themselves.
LOOKING = frozenset("EOF dump exit help intfs links net nodes ports quit source time".split())
NOT_HERE = frozenset("gterm noecho wait x xterm".split())
SHELL_POLL_MS = 200
IPERF_PORT, IPERF_S = 5001, 5  # as Mininet has them
FLOWS, ALGORITHMS, MANY_FLOWS = "flows", "algorithms", "flows..."
ARGUMENTS = {  # of the lab's own commands: what may follow
    "algorithm": [FLOWS, ALGORITHMS],
    "flows": [],
    "loss": [],
    "rate": [],
    "rtt": [],
    "sleep": [],
    "start": [MANY_FLOWS],
    "stop": [MANY_FLOWS],
}


def _meant(word, words):
    """What somebody may have meant by ``word``, for a message; empty if nothing is like it."""
    close = difflib.get_close_matches(word.lower(), list(words), 1)
    return ", did you mean %s?" % close[0] if close else ""


class Prompt(CLI):
    """Runs until the user leaves it. The host echoes, edits and completes lines, so that here they are whole."""

    use_rawinput = False
    readlineInited = True

    def __init__(self, net, session, words_file):
        self.session, self.plan = session, session.plan["prompt"]
        self.names = {kernels: field for field, kernels in self.plan["ccas"].items()}
        with open(words_file, "w", encoding="utf-8") as file:
            json.dump(self._words(net), file)
            file.flush()
            show(file)
        super().__init__(net, stdin=sys.stdin, stdout=sys.stdout)

    def _words(self, net):
        """What the host completes lines with."""
        own = {name: [self._choices(kind) for kind in kinds] for name, kinds in ARGUMENTS.items()}
        mininets = sorted({name[3:] for name in self.get_names() if name.startswith("do_")} - {"EOF", *own} - NOT_HERE)
        return {"own": own, "mininets": mininets, "nodes": sorted(net)}

    def _choices(self, kind):
        if kind == ALGORITHMS:
            return sorted(self.plan["ccas"])
        return [*self.session.flows, *(["all"] if kind == MANY_FLOWS else [])]

    def isatty(self):
        """Mininet would change the terminal's settings, and let a node read what is typed next."""
        return False

    def onecmd(self, line):
        """One line. What goes wrong is told, and the prompt goes on."""
        session, name = self.session, self.parseline(line)[0]
        try:
            if name in NOT_HERE:
                error("*** %s needs a screen or a controller, and the guest has none\n" % name)
                return None
            known = name and (name in self.mn or hasattr(self, "do_" + name))
            if not known or name in LOOKING or name in ARGUMENTS:
                return super().onecmd(line)
            with session.event(line, other=True):
                pass  # before it runs: it may take long, and be interrupted
            return super().onecmd(line)
        except RefusedError as refusal:
            error("*** %s\n" % refusal)
        except Exception as failure:
            error("*** %s: %s\n" % (name, failure))
        return None

    def default(self, line):
        """A command for a node, or one that there is not."""
        if self.parseline(line)[0] not in self.mn:
            name = line.split()[0]
            words = self._words(self.mn)
            meant = _meant(name, [*words["own"], *words["mininets"], *words["nodes"]])
            error("*** there is no command or node '%s'%s; 'help' lists them\n" % (name, meant))
            return
        super().default(line)

    def waitForNode(self, node):  # noqa: N802 - Mininet's names
        """Print what a node prints until its command ends. What is typed meanwhile is the next command, not its input."""
        while node.waiting:
            try:
                output(node.monitor(timeoutms=SHELL_POLL_MS))
                sys.stderr.flush()
                if node.shell.poll() is not None:  # the command was exit; the next one gets another shell
                    node.waiting = False
            except KeyboardInterrupt:
                node.sendInt()

    # --- the lab's commands ---------------------------------------------------------------------------------------------

    def do_flows(self, line):
        """flows: list the flows: algorithm, hosts, and whether they run"""
        for name, transfer in self.session.flows.items():
            state = "runs" if name in self.session.running else "stopped"
            what = (name, self._field(transfer["cca"]), transfer["client"], transfer["server"], state)
            output("%-4s %-10s %s -> %s  %s\n" % what)

    def do_start(self, line):
        """start FLOW...|all: start flows, each on a new connection"""
        for name in self._flows(line, "start", lambda name: name not in self.session.running):
            self.session.start(name, self._line("start", line))

    def do_stop(self, line):
        """stop FLOW...|all: stop flows"""
        for name in self._flows(line, "stop", lambda name: name in self.session.running):
            self.session.stop(name, self._line("stop", line))

    def do_algorithm(self, line):
        """algorithm FLOW NAME: give a flow another algorithm; if it runs, a new connection takes the old one's place"""
        words = line.split()
        if len(words) != 2:
            raise RefusedError("usage: algorithm FLOW NAME, for example: algorithm f1 cubic")
        if words[1] not in self.plan["ccas"]:
            meant = _meant(words[1], self.plan["ccas"])
            raise RefusedError(
                "this kernel has no algorithm '%s'%s (it has: %s)" % (words[1], meant, self._listed("ccas"))
            )
        (name,) = self._flows(words[0], "algorithm", lambda name: True)
        self.session.set_algorithm(name, self.plan["ccas"][words[1]], self._line("algorithm", line))

    def do_rate(self, line):
        """rate MBIT: set the bottleneck's rate in Mbit/s; the buffer keeps its bytes"""
        if any("link" in entry for entry in self.session.dumbbell.plan["bottlenecks"]):
            raise RefusedError("several links (network.links) keep their rates")
        value = self._number(line, "rate", 0.1, self.plan["rate_mbit_max"], "Mbit/s", self.session.rate_bps / 1e6)
        if value is not None:
            self.session.change(self._line("rate", line), rate_bps=round(value * 1e6))

    def do_rtt(self, line):
        """rtt MS: set the path's base round-trip time in ms, of all flows without an rtt_ms of their own"""
        hosts, specs = self.plan["network_rtt_hosts"], self.session.dumbbell.host_plans
        if not hosts:
            raise RefusedError(
                "every flow of this scenario has an RTT of its own (flows[].rtt_ms or a range), which stays"
            )
        now_ms = (specs[hosts[0]]["delay_us"] - specs[hosts[0]]["rtt_offset_us"]) / 1e3
        value = self._number(line, "rtt", 0.1, self.plan["rtt_ms_max"], "ms", now_ms)
        if value is not None:
            self.session.change(self._line("rtt", line), rtt_us=value * 1000)

    def do_loss(self, line):
        """loss FRACTION: lose so many packets at random, for example 0.01"""
        if not self.session.plan["loss_devices"]:
            raise RefusedError("hosts.segmentation router with network.loss_place before has no place for random loss")
        value = self._number(line, "loss", 0.0, 0.99, "(a fraction)", self.session.loss)
        if value is not None:
            self.session.change(self._line("loss", line), loss=value)

    def do_sleep(self, line):
        """sleep SECONDS: wait, for scripts"""
        seconds = self._number(line, "sleep", 0.0, 3600.0, "s", None)
        if seconds is not None:
            time.sleep(seconds)

    def do_iperf(self, line):
        """iperf [NODE NODE]: measure the TCP bandwidth between two hosts for five seconds"""
        # Mininet's own waits for a line that iperf no longer prints since its version 2.1.
        names = line.split() or [self.mn.hosts[0].name, self.mn.hosts[-1].name]
        if len(names) != 2 or not all(name in self.mn for name in names):
            raise RefusedError("usage: iperf NODE NODE, for example: iperf h1 r1")
        client, server = (self.mn[name] for name in names)
        server.cmd("killall -q -9 iperf; iperf -s -p %d >/dev/null 2>&1 &" % IPERF_PORT)
        if not listens(server, IPERF_PORT):
            raise RefusedError("iperf did not start on %s" % server.name)
        output("*** Iperf: testing TCP bandwidth between %s and %s\n" % (client.name, server.name))
        client.sendCmd("iperf -c %s -p %d -t %d" % (server.IP(), IPERF_PORT, IPERF_S))
        self.waitForNode(client)
        server.cmd("killall -q -9 iperf")

    def do_help(self, line):
        """help [COMMAND]: list the commands, or tell about one"""
        if line:
            return super().do_help(line)
        output("The lab's commands:\n")
        for name in ARGUMENTS:
            output("  %s\n" % getattr(self, "do_" + name).__doc__.replace(": ", "\n      ", 1))
        output("Mininet's: %s\n" % ", ".join(self._words(self.mn)["mininets"]))
        output("NODE COMMAND runs a program on a node (%s); names stand for addresses:\n" % ", ".join(sorted(self.mn)))
        output("  h1 ping -c 3 r1\n  s1 tc -s qdisc show dev s1-s2\n")
        output("What programs write into the folder that they start in is kept: h1 tcpdump -c 100 -w look.pcap\n")
        output("'exit' ends the play and keeps what was measured; Ctrl-C ends the command that runs.\n")
        return None

    # --- what they have in common ---------------------------------------------------------------------------------------

    @staticmethod
    def _line(name, rest):
        return ("%s %s" % (name, rest)).strip()

    def _field(self, cca):
        """The field's name of what the kernel calls ``cca``, which may be a parameter set."""
        return self.names.get(cca) or self.names.get(cca.split("_set")[0], cca)

    def _listed(self, key):
        return ", ".join(sorted(self.plan[key]))

    def _flows(self, line, command, fits):
        """The flows that ``line`` names, now in the user's hand; of "all" those that ``fits()``."""
        flows, names = self.session.flows, line.split()
        if not names:
            raise RefusedError("usage: %s FLOW, for example: %s %s" % (command, command, next(iter(flows))))
        if names == ["all"]:
            names = [name for name in flows if fits(name)]
        for name in names:
            if name not in flows:
                meant = _meant(name, [*flows, "all"])
                raise RefusedError("there is no flow '%s'%s (there are: %s)" % (name, meant, ", ".join(flows)))
        self.session.by_hand.update(names)
        return names

    @staticmethod
    def _number(line, command, low, high, unit, now):
        """The number that ``line`` holds; None after telling what it is now, if there is none."""
        if not line.strip() and now is not None:
            output("%s is %g %s\n" % (command, now, unit))
            return None
        try:
            value = float(line)
        except ValueError:
            raise RefusedError("usage: %s NUMBER %s" % (command, unit)) from None
        if not low <= value <= high:
            raise RefusedError("%s %s: must be %g to %g %s" % (command, line.strip(), low, high, unit))
        return value
