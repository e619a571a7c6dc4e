"""The guest as a machine: makes the few writable places that Linux expects, runs guest.py, switches the machine off.

It stands in /mnt, a mount of this folder. Of the run's scratch folder, lib holds compiled helpers, and out is the one
folder of the host that the guest may write to. In User-Mode Linux (bbrlab/experiment/machine/uml.py) HERE is the host's
name of that folder; nothing here may depend on where on the host it is: a longer path would take more steps, and the run would
no longer be the same. In QEMU (bbrlab/experiment/machine/qemu.py) 9p shares have these names.
"""

import contextlib
import ctypes
import os
import sys
import traceback

from namespaces import mount

MS_RDONLY, MS_NOATIME, MS_BIND = 1, 0x400, 0x1000
RB_POWER_OFF = 0x4321FEDC
PACKAGES = "/usr/lib/python3/dist-packages"
CONSOLE = "/run/console"


def share(name, flags, target):
    """Mount a folder of the host. Without access stamps: whether it was read before must not make a difference."""
    here = os.environ.get("HERE")
    if here:
        mount("none", target, "hostfs", flags | MS_NOATIME, "%s/%s" % (here, name))
    else:
        mount(name, target, "9p", flags | MS_NOATIME, "trans=virtio,version=9p2000.L,msize=262144")


def mount_all():
    """The file systems of the machine."""
    mount("tmpfs", "/run", "tmpfs")
    os.mkdir("/run/guest")
    os.mkdir("/run/lib")
    mount("/mnt", "/run/guest", None, MS_BIND)
    share("lib", MS_RDONLY, "/run/lib")
    share("out", 0, "/mnt")
    mount("proc", "/proc", "proc")
    mount("sysfs", "/sys", "sysfs")
    mount("tmpfs", "/tmp", "tmpfs")  # noqa: S108 - Open vSwitch insists on a writable one
    with contextlib.suppress(OSError):
        mount("devtmpfs", "/dev", "devtmpfs")


def run():
    """Run guest.py with its output in CONSOLE. Returns the exit status."""
    sys.path[0] = "/run/guest"
    sys.path.append(PACKAGES)
    import guest

    return guest.main("/mnt")


def main():
    """Be the machine from its first program to its last breath."""
    mount_all()
    output = os.dup(1)
    with open(CONSOLE, "wb") as console:
        os.dup2(console.fileno(), 1)
        os.dup2(console.fileno(), 2)
    try:
        status = run()
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    with open(CONSOLE, "rb") as console, open("/mnt/console.log", "wb") as kept:
        kept.write(console.read())
    os.write(output, b"bbrlab exit %d\n" % status)
    ctypes.CDLL(None).reboot(ctypes.c_int(RB_POWER_OFF))


main()
