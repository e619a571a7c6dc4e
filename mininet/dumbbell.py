"""The Mininet dumbbell: hosts, two Open vSwitch bridges, and where rate, buffer, delay, loss and jitter stand.

    senders --- s1 ===bottleneck=== s2 --- receivers        (forward flows; reverse flows mirror it)

- Rate limiter (htb; where the rate changes, limiter.py) and queue stand alone on the bottleneck's egress.
- A path's whole base RTT is a netem on the switch port *towards the sender*, so that only ACKs are delayed and the
  delay never shares a queue with data.
- Receive offload, where the plan says so: a netem below the port's own, or alone, on every switch port towards a host. It keeps
  packets for a time after the first came and then hands over all at once, as a NIC does that delays its interrupt; the host
  merges those of a flow (GRO).
- Where the plan delays or shakes data, that is a netem on the switch port towards the receiver; packets that come late are held back
  between the bottleneck's switch and one of the receivers' own (s5, s6):

    senders --- s1 ===bottleneck=== s2 ---late--- s6 --- receivers

- Random loss is a netem on the switch port towards the receiver, behind the bottleneck; or, where the plan says so, before
  it, between a switch of the senders' own (s3, s4) and the one with the bottleneck's queue:

    senders --- s3 ---loss--- s1 ===bottleneck=== s2 --- receivers

  Not at the sender's interface: there it would lose whole segments that are yet to be cut.
"""

import array
import contextlib
import fcntl
import os
import resource
import signal
import socket
import struct
import subprocess
import time
from hashlib import sha1

import mininet.util
from ip_version import is_ipv6, neighbours_key
from limiter import Limiter
from mininet.net import Mininet
from namespaces import network_of
from netlink import Netlink
from nodes import LabHost, LabInterface, LabLink, LabSwitch, PromptHost, PromptSwitch
from refusal import refusal

# Open vSwitch reads its CPU count once the monotonic clock passes 10 s; before that it starts no upcall handler and
# silently drops packets. Sleeping costs nothing in virtual time.
OVS_SAFE_S = 12
OVS_CLOCK = "/run/lib/ovs_clock.so"
# Any rate makes netem a strict first-in first-out queue, so that jitter and changed delays never reorder packets.
NETEM_FIFO_RATE = "1000gbit"
NETEM_LIMIT_PACKETS = 10_000_000
# Checksums stay "offloaded": nothing corrupts packets here, and computing them at every hop changes no outcome.
OFFLOADS = {
    "off": {"tso": False, "gso": False, "gro": False},
    "nic": {"tso": False, "gso": True, "gro": False},
    # Switch ports are always "off": a segment goes whole through the qdisc of the first one on its way, which is the
    # bottleneck, and is cut behind it.
    "router": {"tso": True, "gso": True, "gro": False},
}
SIOCETHTOOL = 0x8946
ETHTOOL_GET = {"tso": 0x1E, "gso": 0x23, "gro": 0x2B}  # and one more sets it
RUN = "/run/openvswitch"
DAEMONS = ("ovs-vswitchd", "ovsdb-server")
GRO_TIMER, DEFERRED = "gro_flush_timeout", "napi_defer_hard_irqs"
DEFERRED_INTERRUPTS = 2  # polls of the timer that may find nothing before interrupts are on again
ASK_AGAIN, ANSWER_S = "retrans_time_ms", 1.0
REACHABLE, REACHABLE_MS = "base_reachable_time_ms", 1_000_000_000
PREFIX_BITS = {False: 16, True: 64}
# Before a host may have addresses of IPv6: none that it makes by itself, for which it would announce itself and ask for routers.
ADDRESSES_OF_ITS_OWN, NO_ADDRESSES = "net.ipv6.conf.%s.addr_gen_mode", 1
IPV6_OFF = "net.ipv6.conf.%s.disable_ipv6"
# Whether an address is still there a host would ask from an address of that kind; it does so after so long without an answer to what it sent.
PROBE_AFTER, PROBE_AFTER_S = "delay_first_probe_time", 1_000_000
# How many addresses all hosts together may know. Mininet raises those of ARP (fixLimits()), and leaves IPv6 1024, enough for 512 hosts.
NEIGHBOURS_MAX = ("gc_thresh1", "gc_thresh2", "gc_thresh3")
FEW_DESCRIPTORS, DESCRIPTORS_PER_HOST = 128, 4
STEPS_PER_SIGN = 200
QUEUE_PARENT, QUEUE_HANDLE = 0x10003, 0x300000  # 1:3 and 30:, as tc writes them
TCP_MEMORY_PAGES = (1 << 28, 1 << 28, 1 << 28)  # more than any guest has: never the limit


class SetupError(RuntimeError):
    """A step of the guest's set-up failed; the message says which command and what it printed.

    Attributes:
        printed: the latter.
    """

    printed = ""


def call(*argv, stdin=None, env=None):
    """Run a command to its end and return what it printed. SetupError with its output if it fails."""
    done = subprocess.run(
        argv, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=env
    )
    if done.returncode:
        error = SetupError(
            "%s\n%s%s" % (" ".join(argv), "".join("  | %s\n" % s for s in (stdin or "").splitlines()), done.stdout)
        )
        error.printed = done.stdout
        raise error
    return done.stdout


def write(path, value):
    """Write a value to a file of /proc or /sys."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(str(value))
    except OSError as error:
        raise SetupError("%s: cannot write %s: %s" % (path, value, error.strerror)) from None


def read(path):
    """The stripped text of a small file of /proc or /sys."""
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def sysctl_file(key):
    """The file of ``key`` (net.ipv4.…) of this process's network namespace."""
    return "/proc/sys/" + key.replace(".", "/")


def slowest_s(plan):
    """The longest that a path of the plan delays a packet and its answer before the experiment, without a queue, in s."""
    ways = [(h["delay_us"] + h["jitter_us"] + h["processing_us"], h["sends"]) for h in plan["hosts"]]
    there, back = (max((us for us, sends in ways if sends == to), default=0.0) for to in (False, True))
    return (there + back + plan.get("late", {"late_us": 0.0})["late_us"]) * 1e-6


def set_sysctl(key, value):
    """Set ``key`` of this process's network namespace."""
    write(sysctl_file(key), value)


def interface_file(pid, device, name):
    """The path of a setting of ``device`` as the host with process ``pid`` sees it: /sys shows one namespace's devices."""
    return "/proc/%d/root/sys/class/net/%s/%s" % (pid, device, name)


def open_vswitch_runs():
    """Whether Open vSwitch runs already: it may, on a machine that is not the lab's own."""
    return os.path.exists(RUN + "/db.sock")


def start_database():
    """Start Open vSwitch's database server, on an empty database: one record, its schema (ovsdb(5)).

    `ovsdb-tool create` writes the same record, and takes longer than the server needs to start.
    """
    os.makedirs(RUN, exist_ok=True)
    db = RUN + "/conf.db"
    with open("/usr/share/openvswitch/vswitch.ovsschema", "rb") as file:
        schema = file.read()
    with open(db, "wb") as file:
        file.write(b"OVSDB JSON %d %s\n%s" % (len(schema), sha1(schema).hexdigest().encode(), schema))
    call("ovsdb-server", db, "--remote=punix:%s/db.sock" % RUN, "--no-chdir", "--detach", "--pidfile", "-vconsole:off")


def start_open_vswitch(own_machine, bridges, clock=None):
    """Start ovsdb-server and ovs-vswitchd, which has the ``bridges``, words of ovs-vsctl, when this returns.

    ``clock``: a library (ovs_clock.c) with which there is nothing to wait for.
    """
    start_database()
    # One handler and one revalidator: there is one CPU. A long revalidation interval: the flow table of a dumbbell is
    # small and static, and each round costs more than a second of traffic.
    call("ovs-vsctl", "--no-wait", "--", "init", "--", "set", "Open_vSwitch", ".",
         "other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1",
         "other_config:max-revalidator=10000", "other_config:max-idle=3600000",
         "other_config:stats-update-interval=3600000", *bridges)  # fmt: skip
    if clock:
        env = dict(os.environ, LD_PRELOAD=clock)
    else:
        env = None
        if own_machine:
            time.sleep(max(0.0, OVS_SAFE_S - time.monotonic()))
    call(
        "ovs-vswitchd", "unix:%s/db.sock" % RUN, "--no-chdir", "--detach", "--pidfile", "-vconsole:off", "-vsyslog:off",
        env=env,
    )  # fmt: skip


def stop_open_vswitch():
    """End what start_open_vswitch() started, and remove its database."""
    for daemon in DAEMONS:
        file = "%s/%s.pid" % (RUN, daemon)
        if os.path.exists(file):  # it removes it at its end
            os.kill(daemon_pid(daemon), signal.SIGTERM)
            while os.path.exists(file):
                time.sleep(0.01)
    for file in ("conf.db", ".conf.db.~lock~"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink("%s/%s" % (RUN, file))


def daemon_pid(daemon):
    """The process number of one of Open vSwitch's daemons, which runs."""
    with open("%s/%s.pid" % (RUN, daemon), encoding="utf-8") as file:
        return int(file.read())


def freeze_open_vswitch():
    """Stop Open vSwitch's daemons; the kernel goes on switching by the flows that it has.

    Their timers would make the result depend on when they were started, which differs between versions of Debian.
    A packet for which the kernel had no flow would be lost: datapath_misses() tells.
    """
    for daemon in DAEMONS:
        os.kill(daemon_pid(daemon), signal.SIGSTOP)


def feature_is_on(sock, device, command):
    """What ethtool says of one offload of ``device``, in the network namespace of ``sock``."""
    return bool(_ethtool(sock, device, command, 0))


def set_offloads(sock, device, offloads):
    """Set offloads of ``device``, in the network namespace of ``sock``: {name in ETHTOOL_GET: whether it is on}."""
    for name, on in offloads.items():
        _ethtool(sock, device, ETHTOOL_GET[name] + 1, int(on))


def _ethtool(sock, device, command, value):
    state = array.array("I", [command, value])  # struct ethtool_value
    fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP", device.encode(), state.buffer_info()[0]))
    return state[1]


def loss_words(loss, burst_packets):
    """tc arguments by which a netem loses packets with probability ``loss``: each on its own, or in bursts of so many in the mean.

    In bursts (Gilbert's model): one begins with the first probability after a packet that is not lost, and ends with the second after
    one that is.
    """
    if not loss:
        return []
    if burst_packets is None:
        return ["loss", "random", "%.8f%%" % (100 * loss)]
    return ["loss", "gemodel", "%.8f%%" % (100 * loss / (1 - loss) / burst_packets), "%.8f%%" % (100 / burst_packets)]


def netem_loss(loss, burst_packets):
    """tc arguments of a netem that loses packets (loss_words()) and passes on the others at once, in order."""
    return ["netem", "limit", str(NETEM_LIMIT_PACKETS), *loss_words(loss, burst_packets)]


def netem_interrupts(delay_us):
    """tc arguments of a netem that hands over what came within ``delay_us`` after a first packet, in order, at once."""
    return ["netem", "limit", str(NETEM_LIMIT_PACKETS), "slot", "%.3fus" % delay_us, "%.3fus" % delay_us]


def netem_late(share, late_us):
    """tc arguments of a netem that holds back a share of the packets, each on its own, and passes on the others at once.

    netem's words are the other way round: what is "reordered" is sent at once, and the others are delayed.
    """
    late = ["delay", "%.3fus" % late_us, "reorder", "%.8f%%" % (100 * (1 - share)), "gap", "1"]
    return ["netem", "limit", str(NETEM_LIMIT_PACKETS), *late]


def netem(delay_us, loss, burst_packets, jitter_kind, jitter_us, processing_us, overtakes=False):
    """tc arguments of a netem that delays by ``delay_us``, reorders only if packets may overtake, and loses packets (loss_words()).

    Jitter adds between 0 and ``jitter_us``: ``per-packet`` uniformly for each packet, ``slotted`` by letting packets
    leave only at the end of a slot, whose length is drawn uniformly from 0 to ``jitter_us`` when it begins (Bless et al.
    2025, section V; slots of equal length give a flow in a deep buffer half the advantage that they measured); those of
    ``aggregated`` have equal length.
    What hosts take, between 0 and ``processing_us`` for each packet, is added to that.
    """
    words = ["netem", "limit", str(NETEM_LIMIT_PACKETS)]
    half = (processing_us + (jitter_us if jitter_kind == "per-packet" else 0.0)) / 2
    if half:
        words += ["delay", "%.3fus" % (delay_us + half), "%.3fus" % half]
    else:
        words += ["delay", "%.3fus" % delay_us]
    words += loss_words(loss, burst_packets)
    words += [] if overtakes else ["rate", NETEM_FIFO_RATE]
    if jitter_kind in ("slotted", "aggregated"):
        least = "%.3fus" % jitter_us if jitter_kind == "aggregated" else "0us"
        words += ["slot", least, "%.3fus" % jitter_us]
    return words


class Dumbbell:
    """The running topology. ``plan`` is the dictionary of plan.json (its fields: docs/reference/plan.md)."""

    def __init__(self, plan, switch_is_ours, sign_of_life):
        self.plan, self.switch_is_ours = plan, switch_is_ours
        self.sign_of_life, self.steps = sign_of_life, 0
        # Mininet raises this limit when it makes a net; its mnexec then closes every descriptor below it, one call each. So it is
        # no more than hosts need: each has sockets of its own here (nodes.py, sampler.py), and one while it is pinged.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = FEW_DESCRIPTORS + DESCRIPTORS_PER_HOST * len(plan["hosts"])
        limits = max(soft, needed), max(hard, needed)
        mininet.util.numCores.ncores = os.cpu_count()  # Mininet would start grep to count them
        LabSwitch.run_vsctl = self._start_switches
        host, switch = (PromptHost, PromptSwitch) if "prompt" in plan else (LabHost, LabSwitch)
        self.net = Mininet(switch=switch, host=host, link=LabLink, intf=LabInterface, controller=None, build=False)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        self.hosts, self.ports = {}, {}
        self.host_plans = {h["name"]: h for h in plan["hosts"]}
        self.limiters = {}
        if "prompt" in plan or any(c["rate_bps"] is not None for c in plan["changes"]):
            route = Netlink(os.getpid())
            for link in plan["bottlenecks"]:
                if link.get("constant"):
                    continue
                self.limiters[link["device"]] = Limiter(link, route, plan)
        self.path_steps = None
        if "prompt" in plan or plan["changes"]:
            from path_steps import PathSteps  # which other runs need not wait for

            self.path_steps = PathSteps(plan["loss_devices"])
        self.loss = 0.0  # until renew_queues(loss): calibration needs every packet

    def _step(self):
        """One of the steps that there are as many of as hosts or programs, so that they may take a minute at one instant."""
        self.steps += 1
        if self.steps % STEPS_PER_SIGN == 0:
            self.sign_of_life()

    def build(self):
        """Create hosts, switches, links; set offloads, socket limits and queues."""
        links = self.plan["switch_links"]
        names = dict.fromkeys(name for pair in links for name in pair)
        switches = {n: self.net.addSwitch(n) for n in names}
        trunks = []
        for one, other in links:
            trunks += ["%s-%s" % (one, other), "%s-%s" % (other, one)]
            self.net.addLink(switches[one], switches[other], intfName1=trunks[-2], intfName2=trunks[-1])
        for spec in self.plan["hosts"]:
            name = spec["name"]
            host = self.net.addHost(name, ip="%s/%d" % (spec["ip"], PREFIX_BITS[is_ipv6(self.plan)]))
            port = "%s-%s" % (spec["switch"], name)
            self.net.addLink(host, switches[spec["switch"]], intfName1=name + "-eth0", intfName2=port)
            self._step()
            self.hosts[name], self.ports[name] = host, port
        if "mtu_bytes" in self.plan:
            self._set_mtu(trunks)
        if is_ipv6(self.plan):
            self._switch_ipv6_on()
        self.net.build()
        self.net.start()
        if self.plan["own_machine"]:
            # TCP's memory of a whole kernel: by default a sixteenth of it, which deep buffers with many flows exceed;
            # TCP would then shrink windows and drop what it has received.
            set_sysctl("net.ipv4.tcp_mem", "%d %d %d" % TCP_MEMORY_PAGES)
        for name, host in self.hosts.items():
            with network_of(host.pid):
                self._configure_host(name)
            self._step()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for port in trunks + list(self.ports.values()):
                set_offloads(sock, port, OFFLOADS["off"])
        self.tc(self.queue_commands() + self.port_commands("add") + self.interrupt_commands())
        self.set_queue_options()

    def _set_mtu(self, trunks):
        """Give every end of every link the plan's MTU."""
        mtu, route = self.plan["mtu_bytes"], Netlink(os.getpid())
        for device in trunks + list(self.ports.values()):
            route.set_mtu(device, mtu)
        for name, host in self.hosts.items():
            host.netlink.set_mtu(name + "-eth0", mtu)
        route.socket.close()

    def _switch_ipv6_on(self):
        """Let the hosts have addresses of IPv6; switches have none, and say nothing."""
        if self.plan["own_machine"]:
            for name in NEIGHBOURS_MAX:
                set_sysctl("net.ipv6.neigh.default." + name, read(sysctl_file("net.ipv4.neigh.default." + name)))
        for name, host in self.hosts.items():
            with network_of(host.pid):
                set_sysctl(ADDRESSES_OF_ITS_OWN % (name + "-eth0"), NO_ADDRESSES)
                set_sysctl(IPV6_OFF % (name + "-eth0"), 0)
                set_sysctl(neighbours_key(self.plan, name + "-eth0", PROBE_AFTER), PROBE_AFTER_S)

    def _start_switches(self, words):
        """Tell Open vSwitch of all bridges."""
        if self.switch_is_ours:
            start_open_vswitch(self.plan["own_machine"], words, OVS_CLOCK if "prompt" in self.plan else None)
        else:
            call("ovs-vsctl", *words)

    def _configure_host(self, name):
        """Set the offloads, sysctls and qdisc of host ``name``, in whose network namespace this process is."""
        dev = name + "-eth0"
        offloads = dict(OFFLOADS[self.plan["segmentation"]])
        if self.plan["interrupt_delay_us"] or self.plan["gro_timer_us"]:
            offloads["gro"] = True
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            set_offloads(sock, dev, offloads)
        if self.plan["segmentation"] == "off":
            # Since Linux 4.17 TCP builds segments of several packets whatever ethtool says; this makes it stop.
            self.hosts[name].netlink.set_gso_max_segs(dev, 1)
        if self.plan["gro_timer_us"]:
            write(interface_file(self.hosts[name].pid, dev, GRO_TIMER), round(self.plan["gro_timer_us"] * 1000))
            write(interface_file(self.hosts[name].pid, dev, DEFERRED), DEFERRED_INTERRUPTS)
        for key, value in {**self.plan["sysctls"], **self.host_plans[name].get("sysctls", {})}.items():
            set_sysctl(key, value)
        if self.plan["virtual"]:
            # No ARP (of IPv6: no neighbour discovery) while the flows run: an address once confirmed stays so.
            set_sysctl(neighbours_key(self.plan, dev, REACHABLE), REACHABLE_MS)
        if slowest_s(self.plan) > ANSWER_S:
            # It gives up after three questions without an answer, a second apart.
            set_sysctl(neighbours_key(self.plan, dev, ASK_AGAIN), round(1000 * (ANSWER_S + slowest_s(self.plan))))
        if not self.plan["own_machine"]:
            # The lab's kernels let veth orphan packets (kernels/patches/veth). Elsewhere a netem that delays a little
            # does it; without, TCP Small Queues would count the bottleneck's queue as the sender's own.
            call("tc", "qdisc", "add", "dev", dev, "root", *netem(1.0, 0.0, None, None, 0, 0))
        elif self.host_plans[name]["pacing"] == "fq":
            # The default limits of fq (10,000 packets, 100 a flow) would be a second bottleneck queue. And with more than
            # two flows for each of its 1024 buckets it forgets old ones by the address of their sockets, which the
            # set-up moves.
            limits = ["limit", "1000000", "flow_limit", "1000000", "buckets", "65536"]
            call("tc", "qdisc", "add", "dev", dev, "root", "fq", *limits)

    def queue_commands(self):
        """tc batch lines for the bottlenecks' queues in their initial state."""
        lines = []
        for link in self.plan["bottlenecks"]:
            dev, rate = link["device"], "%dbit" % link["rate_bps"]
            if dev in self.limiters:
                lines += self.limiters[dev].commands()
                continue
            lines += [
                "qdisc add dev %s root handle 1: htb default 3" % dev,
                "class add dev %s parent 1: classid 1:3 htb rate %s" % (dev, rate),
                "qdisc add dev %s parent 1:3 handle 30: %s" % (dev, " ".join(link["qdisc"])),
            ]
        return lines

    def set_queue_options(self):
        """Give the bottlenecks' queues what tc has no words for."""
        for link in self.plan["bottlenecks"]:
            if "qdisc_options" not in link:
                continue
            route = Netlink(os.getpid())
            options = bytes.fromhex(link["qdisc_options"])
            try:
                route.change_qdisc(link["device"], QUEUE_PARENT, QUEUE_HANDLE, link["qdisc"][0], options)
            except OSError as error:
                raise SetupError("network.qdisc: %s" % error) from None
            route.socket.close()

    def port_commands(self, verb, devices=None):
        """tc batch lines that add or change the netem of ``devices`` (default: all that have one)."""
        words = self.netems()
        return ["qdisc %s dev %s root handle 2: %s" % (verb, d, " ".join(words[d])) for d in devices or words]

    def interrupt_commands(self):
        """tc batch lines that put the delay of interrupts on every port towards a host, below its netem if it has one."""
        if not self.plan["interrupt_delay_us"]:
            return []
        words, above = " ".join(netem_interrupts(self.plan["interrupt_delay_us"])), self.netems()
        places = [(port, "parent 2:" if port in above else "root") for port in self.ports.values()]
        return ["qdisc add dev %s %s handle 3: %s" % (port, place, words) for port, place in places]

    def netems(self):
        """{switch port: words of its netem}: delay and jitter towards a host, random loss, and what comes late."""
        lossy, burst_packets = self.plan["loss_devices"], self.plan.get("loss_burst_packets")
        words = {}
        for name, port in self.ports.items():
            spec = self.host_plans[name]
            if spec["sends"] or port in lossy or spec["delay_us"] or spec["jitter_kind"]:
                loss = self.loss if port in lossy else 0.0
                words[port] = netem(
                    spec["delay_us"],
                    loss,
                    burst_packets,
                    spec["jitter_kind"],
                    spec["jitter_us"],
                    spec["processing_us"],
                    spec.get("overtakes", False),
                )
        words.update((d, netem_loss(self.loss, burst_packets)) for d in lossy if d not in words)
        if "late" in self.plan:
            late = self.plan["late"]
            words.update((d, netem_late(late["share"], late["late_us"])) for d in late["devices"])
        return words

    def renew_queues(self, loss=0.0):
        """Put fresh queues in place of all, which lose packets with probability ``loss`` where the plan says.

        Calibration then leaves no trace in an AQM's state, and netem, which draws its seed when it is made, draws it
        from the run's seed alone (guest.py).
        """
        self.loss = loss
        ports = self.port_commands("add") + self.interrupt_commands()
        devices = [link["device"] for link in self.plan["bottlenecks"]]
        devices += dict.fromkeys(line.split()[3] for line in ports)
        self.tc(["qdisc del dev %s root" % d for d in devices] + self.queue_commands() + ports)
        self.set_queue_options()

    def change(self, step):
        """Apply one entry of ``changes``: new bottleneck rate, new delays, new loss; queues keep their packets."""
        delayed, loss_changes = [], step.get("loss") is not None
        for name, delay_us in (step.get("delay_us") or {}).items():
            self.host_plans[name]["delay_us"] = delay_us
            delayed.append(self.ports[name])
        if loss_changes:
            self.loss = step["loss"]
        touched = {*delayed, *(self.plan["loss_devices"] if loss_changes else [])}
        if touched:
            lines = self.port_commands("change", sorted(touched))
            self.path_steps.take(delayed, loss_changes, lambda: self.tc(lines))
        if step.get("rate_bps") is not None:
            for limiter in self.limiters.values():
                limiter.change(step["rate_bps"])

    @staticmethod
    def tc(lines):
        """Run tc on many lines in one process. SetupError, naming the scenario's field, for the line that is refused."""
        try:
            call("tc", "-batch", "-", stdin="\n".join(lines) + "\n")
        except SetupError as error:
            raise SetupError(refusal(lines, error.printed)) from None

    def popen(self, name, argv, **options):
        """Start a program on host ``name`` through Mininet."""
        self._step()
        return self.hosts[name].popen(argv, shell=False, **options)

    def start(self, name, argv, **options):
        """Start a program on host ``name`` at once: popen() starts Mininet's mnexec before it."""
        self._step()
        with network_of(self.hosts[name].pid):
            return subprocess.Popen(argv, start_new_session=True, close_fds=False, **options)

    def stop(self):
        """Take the topology down (real-time backend; a virtual machine is simply switched off)."""
        bridges = [["--", "--if-exists", "del-br", switch.name] for switch in self.net.switches]
        with contextlib.suppress(SetupError):  # Open vSwitch may be what failed
            call("ovs-vsctl", *[word for words in bridges for word in words])
        route = Netlink(os.getpid())
        for device in ["%s-%s" % tuple(pair) for pair in self.plan["switch_links"]] + list(self.ports.values()):
            with contextlib.suppress(OSError):  # not there yet
                route.delete(device)
        route.socket.close()
        for node in self.net.hosts + self.net.switches:
            node.terminate()
