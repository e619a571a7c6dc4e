"""A run that somebody steers from a prompt, in real time: samples as in any run, and a record of what was changed when.

Beside samples.raw the guest writes events.jsonl, one line for each thing that changed:
    {"at_ns", "took_ns": since the experiment's start, and how long the change took, "command": the line at the prompt, or
     null for what the scenario had planned, and one of
     "started": the transfer, as docs/reference/plan.md has it, with "flow" | "stopped", "ended": number of a transfer |
     "changed": {"rate_bps", "rtt_us", "loss"}, as far as they changed | "other": true, a command that may have done anything}
The host reads both while they grow (bbrlab_apps/play/live_samples.py).
"""

import contextlib
import fcntl
import json
import os
import signal
import sys
import termios
import threading
import time

import sampler as sampling
from namespaces import mount, network_of
from sampler import show

TERMINAL = "/dev/tty1"  # bbrlab/experiment/machine/uml.py has the host's end
NODES_FILES = "/mnt/prompt-files"  # in the host's folder (machine.py); bbrlab_apps/play/node_files.py keeps them
BEAT_NS = 1_000_000_000
SHOW_NS = 100_000_000  # how often the host sees new samples, at most
LISTEN_S, LISTEN_POLL_S = 5, 0.005
LISTENING = "0A"  # of /proc/net/tcp


class RefusedError(Exception):
    """A command that cannot be done; the text says why, and what can."""


class Over(BaseException):
    """The play is over, whatever the prompt is doing."""


def mount_terminals():
    """Where the shells of nodes have their terminals, and the folder that they are in: what they write there is kept.

    Before any node is made: it keeps the mounts that it finds, and is where this process is.
    """
    os.makedirs("/dev/pts", exist_ok=True)
    with contextlib.suppress(OSError):
        mount("devpts", "/dev/pts", "devpts")
    os.makedirs(NODES_FILES, exist_ok=True)
    os.chdir(NODES_FILES)


def listens(host, port):
    """Wait until a program listens at TCP ``port`` of ``host``. Whether one does."""
    wanted = ":%04X" % port
    deadline = time.monotonic() + LISTEN_S
    with network_of(host.pid):
        while time.monotonic() < deadline:
            with open("/proc/thread-self/net/tcp", encoding="ascii") as file:
                rows = [line.split() for line in file]
            if any(row[1].endswith(wanted) and row[3] == LISTENING for row in rows[1:]):
                return True
            time.sleep(LISTEN_POLL_S)
    return False


class _CtrlC:
    """Ctrl-C at the prompt: it interrupts what runs there, but nothing by halves (whole())."""

    inside, waiting = 0, False

    @classmethod
    def handle(cls, signum, frame):
        """Handler of SIGINT, in the main thread."""
        cls.waiting = bool(cls.inside)
        if not cls.waiting:
            raise KeyboardInterrupt


@contextlib.contextmanager
def whole():
    """Ctrl-C waits until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _CtrlC.inside += 1
    try:
        yield
    finally:
        _CtrlC.inside -= 1
    if _CtrlC.waiting and not _CtrlC.inside:
        _CtrlC.waiting = False
        raise KeyboardInterrupt


@contextlib.contextmanager
def unseen_by_children():
    """What is started in the block does not see Ctrl-C: the terminal sends it to all. (Not for iperf3, which ends by it.)"""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Session:
    """What runs, and what was done to it. Commands come from the prompt's thread, what was planned from another.

    Attributes:
        flows: {name: its transfer as it was last started, or will be}.
        running: {name: number of the transfer that carries it}.
        count: transfers so far; they are numbered in the order of their starts.
    """

    def __init__(self, plan, dumbbell, sampler, traffic, out, start_ns):
        self.plan, self.dumbbell, self.sampler, self.traffic = plan, dumbbell, sampler, traffic
        self.start_ns = start_ns
        self.flows = {"f%d" % (t["id"] + 1): t for t in plan["transfers"]}
        self.running, self.by_hand, self.fresh = {}, set(), set(self.flows)
        self.count, self.next_port = 0, max(t["port"] for t in plan["transfers"]) + 1
        self.events = open(out + "/events.jsonl", "w", encoding="utf-8")  # noqa: SIM115 - lives as long as the guest
        self.lock = threading.RLock()
        self.ending = threading.Event()
        self.failed, self.duration_ns = None, None
        self.rate_bps = plan["bottlenecks"][0]["rate_bps"]
        self.loss = plan["loss"]

    def now_ns(self):
        """Since the experiment's start."""
        return time.monotonic_ns() - self.start_ns

    @contextlib.contextmanager
    def event(self, command, **content):
        """Do what the block does and write down when. Nothing is written if it is refused or fails."""
        with self.lock, whole():
            at_ns = self.now_ns()
            yield content
            self.events.write(
                json.dumps({"at_ns": at_ns, "took_ns": self.now_ns() - at_ns, "command": command, **content})
            )
            self.events.write("\n")
            self.events.flush()
            show(self.events)

    def start(self, name, command=None):
        """Start flow ``name``. RefusedError if it runs."""
        with self.lock, whole():
            if name in self.running:
                raise RefusedError("%s runs already" % name)
            transfer = dict(self.flows[name], id=self.count)
            if name not in self.fresh:  # else a server waits already (traffic.py)
                transfer["port"] = self.next_port
                self.traffic.start_server(transfer)
                self.next_port += 1
            self.fresh.discard(name)
            self._await_server(transfer)
            with self.event(command, flow=name, started=transfer):
                self.traffic.start_client(transfer)
            self.flows[name], self.running[name] = transfer, self.count
            self.count += 1

    def _await_server(self, transfer):
        """Return when the server of ``transfer`` listens. RefusedError if it does not."""
        if not listens(self.dumbbell.hosts[transfer["server"]], transfer["port"]):
            raise RefusedError("the iperf3 server of this flow did not start within %d s" % LISTEN_S)

    def stop(self, name, command=None):
        """Stop flow ``name``. RefusedError if it does not run."""
        with self.lock:
            if name not in self.running:
                raise RefusedError("%s does not run" % name)
            with self.event(command, flow=name, stopped=self.running[name]):
                self.traffic.interrupt(self.running.pop(name))

    def set_algorithm(self, name, cca, command):
        """Give flow ``name`` another algorithm (the kernel's name): a new connection takes the old one's place."""
        with self.lock:
            was_running = name in self.running
            if was_running:
                self.stop(name, command)
            self.flows[name] = dict(self.flows[name], cca=cca)
            if was_running:
                self.start(name, command)

    def change(self, command, rate_bps=None, rtt_us=None, loss=None):
        """Change the network."""
        with self.lock:
            hosts = self.plan["prompt"]["network_rtt_hosts"]
            specs = self.dumbbell.host_plans
            delay_us = None if rtt_us is None else {name: rtt_us + specs[name]["rtt_offset_us"] for name in hosts}
            asked = {"rate_bps": rate_bps, "rtt_us": rtt_us, "loss": loss}
            changed = {k: v for k, v in asked.items() if v is not None}
            with self.event(command, changed=changed), unseen_by_children():
                self.dumbbell.change({"rate_bps": rate_bps, "delay_us": delay_us, "loss": loss})
            self.rate_bps = self.rate_bps if rate_bps is None else rate_bps
            self.loss = self.loss if loss is None else loss

    def begin(self, say):
        """Sample, and do what the scenario has planned, from now on."""
        for work in (lambda: self._sample(say), self._follow_plan):
            threading.Thread(target=self._guarded, args=(work,), daemon=True).start()

    def _guarded(self, work):
        """``work``; if it fails, so does the play."""
        try:
            work()
        except Exception as error:
            self.failed = self.failed or "%s: %s" % (type(error).__name__, error)
            self.end_prompt()

    def end_prompt(self):
        """Have the prompt's thread end the play."""
        self.ending.set()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    def _sample(self, say):
        """Sample on the grid until the end; the last sample is the end."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGUSR1})  # the prompt's
        clock, interval_ns = sampling.Clock(), 1_000_000_000 / self.plan["sample_hz"]
        position, beat_ns, shown_ns = 0, 0, -SHOW_NS
        while True:
            instant_ns = round(position * interval_ns)
            clock.sleep_until(self.start_ns + instant_ns)
            over = self.ending.is_set() or instant_ns >= self.plan["duration_ns"]
            self.sampler.take(self.now_ns())
            if over:
                break
            position += 1
            if instant_ns >= beat_ns:
                self.sampler.bury(instant_ns)
                say("bbrlab at %.3f" % (instant_ns / 1e9))
                beat_ns = instant_ns + BEAT_NS
            if instant_ns >= shown_ns + SHOW_NS:
                self.sampler.flush()
                show(self.sampler.file)
                shown_ns = instant_ns
        self.sampler.bury(instant_ns)
        self.duration_ns = instant_ns
        if not self.ending.is_set():
            self.end_prompt()

    def _follow_plan(self):
        """Do what the scenario has planned, but leave to the user the flows that he has taken in hand; see which end."""
        steps = [(t["start_ns"], self._start_planned, "f%d" % (t["id"] + 1)) for t in self.plan["transfers"]]
        steps += [
            (t["stop_ns"], self._stop_planned, "f%d" % (t["id"] + 1))
            for t in self.plan["transfers"]
            if t["stop_ns"] < self.plan["duration_ns"]
        ]
        steps += [(c["at_ns"], self._change_planned, c) for c in self.plan["changes"]]
        steps.sort(key=lambda step: step[0])
        beat_ns = BEAT_NS
        while not self.ending.is_set():
            due_ns = min(beat_ns, steps[0][0] if steps else beat_ns)
            if self.ending.wait(max(0.0, (due_ns - self.now_ns()) / 1e9)):
                return
            while steps and steps[0][0] <= due_ns:
                _, do, what = steps.pop(0)
                do(what)
            if due_ns >= beat_ns:
                self.see_ends()
                beat_ns += BEAT_NS

    def _start_planned(self, name):
        with self.lock:
            if name not in self.by_hand and name not in self.running:
                self.start(name)

    def _stop_planned(self, name):
        with self.lock:
            if name not in self.by_hand and name in self.running:
                self.stop(name)

    def _change_planned(self, step):
        rtt_us = None
        for name, delay_us in (step["delay_us"] or {}).items():
            rtt_us = delay_us - self.dumbbell.host_plans[name]["rtt_offset_us"]
        self.change(None, step["rate_bps"], rtt_us, step["loss"])

    def see_ends(self):
        """Write down which flows ended by themselves."""
        with self.lock:
            self.traffic.reap()
            for name, number in list(self.running.items()):
                if number in self.traffic.done:
                    with self.event(None, flow=name, ended=number):
                        del self.running[name]

    def end(self):
        """Take the last sample, stop all flows. Returns how long the play was, in ns. RuntimeError if it failed."""
        self.ending.set()
        while self.duration_ns is None and not self.failed:
            time.sleep(0.01)
        with self.lock:
            self.see_ends()
            for number in self.running.values():
                self.traffic.interrupt(number)
            self.events.close()
        if self.failed:
            raise OSError("the play ended by itself: %s" % self.failed)
        return self.duration_ns


@contextlib.contextmanager
def at_terminal():
    """Within the block the prompt's terminal is this process's input, output and controlling terminal.

    It has no echo and changes nothing: the host's end does both. Ctrl-C and Ctrl-D work.
    """
    kept = [os.dup(fd) for fd in range(3)]
    with contextlib.suppress(OSError):
        os.setsid()
    terminal = os.open(TERMINAL, os.O_RDWR)
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    modes = termios.tcgetattr(terminal)
    modes[0] = modes[1] = 0
    modes[3] = termios.ICANON | termios.ISIG
    termios.tcsetattr(terminal, termios.TCSANOW, modes)
    sys.stdout.flush()
    for fd in range(3):
        os.dup2(terminal, fd)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for fd, old in enumerate(kept):
            os.dup2(old, fd)
            os.close(old)


def _over(signum, frame):
    raise Over


def run(plan, dumbbell, sampler, traffic, out, start_ns, say):
    """Let the user play until he quits. Returns how long that was, in ns."""
    from prompt import Prompt

    session = Session(plan, dumbbell, sampler, traffic, out, start_ns)
    signal.signal(signal.SIGUSR1, _over)
    signal.signal(signal.SIGINT, _CtrlC.handle)
    say("bbrlab start %d" % start_ns)
    sampling.Clock().sleep_until(start_ns)
    with at_terminal():
        session.begin(say)
        try:
            Prompt(dumbbell.net, session, out + "/prompt.json")
        except Over:
            print("*** the play is over")
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return session.end()
