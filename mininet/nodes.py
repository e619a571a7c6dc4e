"""Mininet's hosts, switches and links without the programs that Mininet starts for each.

The network is the one that Mininet builds: a network namespace for each host, veth pairs, Open vSwitch bridges, with the same
names, numbers and addresses. But a node has no shell, since its user is this program alone; what Mininet has a node's
shell do with ifconfig and ip, the kernel is asked for directly (netlink.py); and Open vSwitch is told of all bridges at
once, which is Mininet's own batch mode. Mininet's popen() works as ever.
"""

import os
import shlex

from mininet.link import Intf, Link
from mininet.node import Host, Node, OVSSwitch
from namespaces import Namespace
from netlink import Netlink

SET_UP = ("ifconfig", "lo", "up")  # what Mininet asks of a switch's shell while it builds a network


class WithoutShell:
    """What a node does without a shell."""

    @classmethod
    def checkSetup(cls):  # noqa: N802 - Mininet's names
        """Mininet looks for its programs with `which`; one that is missing tells when it is started."""

    def startShell(self, mnopts=None):  # noqa: N802
        """Mininet's hook: where a node gets its namespace."""
        self.namespace = Namespace() if self.inNamespace else None
        self.pid = self.namespace.pid if self.namespace else os.getpid()
        self.netlink = Netlink(self.pid)

    def cmd(self, *words, **options):
        """What Mininet still asks of a shell: the loopback interface of a switch."""
        if words != SET_UP:
            raise NotImplementedError("%s has no shell for: %s" % (self.name, " ".join(map(str, words))))
        self.netlink.set_up("lo")
        return ""

    def terminate(self):
        """Let go of the namespace."""
        self.netlink.socket.close()
        if self.namespace:
            self.namespace.end()


class LabHost(WithoutShell, Host):
    """A host: a network namespace with one interface."""

    def config(self, ip=None, **params):
        """Give the interface its address and switch the loopback interface on."""
        self.setIP(ip)
        self.netlink.set_up("lo")


class LabSwitch(WithoutShell, OVSSwitch):
    """An Open vSwitch bridge in the kernel that learns addresses as any switch does."""

    run_vsctl = None  # called with the words of an ovs-vsctl for all bridges

    def __init__(self, name, **params):
        super().__init__(name, failMode="standalone", batch=True, **params)

    @classmethod
    def isOldOVS(cls):  # noqa: N802
        """Mininet starts ovs-vsctl to see whether it is older than 1.10 (2013)."""
        return False

    @classmethod
    def batchStartup(cls, switches, run=None):  # noqa: N802
        """Mininet's hook for starting all switches at once: one ovs-vsctl for all."""
        commands = " ".join(command.strip() for switch in switches for command in switch.commands)
        cls.run_vsctl(shlex.split(commands))
        return switches


class WithShell:
    """What a node has a shell for: commands at the prompt (prompt.py). It is started for the first of them."""

    def sendCmd(self, *words, **options):  # noqa: N802
        """Give the shell a command."""
        self._have_shell()
        return Node.sendCmd(self, *words, **options)

    def cmd(self, *words, **options):
        """Give the shell a command, and wait for what it prints."""
        if words == SET_UP:
            return WithoutShell.cmd(self, *words, **options)
        self._have_shell()
        return Node.cmd(self, *words, **options)

    def _have_shell(self):
        if self.shell:
            if self.shell.poll() is None:
                return
            self.shell = None  # the user has ended it
        pid, apart = self.pid, self.inNamespace
        self.inNamespace = False  # else Mininet would make one more namespace
        Node.startShell(self, "-cda%d" % pid if apart else "-cd")
        self.pid, self.inNamespace = pid, apart


class PromptHost(WithShell, LabHost):
    """A host at the prompt."""


class PromptSwitch(WithShell, LabSwitch):
    """A switch at the prompt."""


class LabInterface(Intf):
    """An end of a link, which is set by netlink."""

    def setMAC(self, macstr):  # noqa: N802
        """It has had it since it was made."""
        self.mac = macstr

    def setIP(self, ipstr, prefixLen=None):  # noqa: N802, N803
        """``ipstr`` is ADDRESS/BITS."""
        self.ip, self.prefixLen = ipstr.split("/")
        self.node.netlink.add_address(self.name, self.ip, int(self.prefixLen))

    def isUp(self, setUp=False):  # noqa: N802, N803
        """Switch it on."""
        self.node.netlink.set_up(self.name)
        return True

    def delete(self):
        """The other end goes with it, or it goes with the host's namespace."""


class LabLink(Link):
    """A veth pair."""

    @classmethod
    def makeIntfPair(cls, intfname1, intfname2, addr1, addr2, node1, node2, deleteIntfs=False):  # noqa: N802, N803
        """Mininet's hook: make both ends."""
        node1.netlink.add_veth(intfname1, addr1, intfname2, addr2, node2.pid)
