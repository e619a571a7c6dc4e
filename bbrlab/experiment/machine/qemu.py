"""QEMU in real time, with KVM where it works: the cross-check of virtual time.

Without KVM a guest is some fifty times slower than a processor, and only paths of a few Mbit/s are right in time.
The machine has the host's files through 9p, read-only, like a UML guest, and one folder to write to.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.experiment.machine import process
from bbrlab.experiment.machine.process import Job
from bbrlab.kernel.built import Kernel, boot_options
from bbrlab.kernel.probe import NO_TIMER_CHECK, QEMU

MOUNT_OPTIONS = "trans=virtio,version=9p2000.L,msize=262144"
# On top of what UML's guests get: page tables, and files cached by 9p.
EXTRA_MEMORY_BYTES = 512 << 20


def cable(number: int, own: Path, other: Path) -> list[str]:
    """QEMU's arguments for a network device that is connected to one of another machine.

    Args:
        number: the last of its address, at both ends.
        own, other: sockets of the two ends; either may appear first, and packets sent before the other are lost.
    """
    ends = f"local.type=unix,local.path={own},remote.type=unix,remote.path={other}"
    return ["-netdev", f"dgram,id=cable{number},{ends}",
            "-device", f"virtio-net-pci,netdev=cable{number},mac=52:54:00:00:00:{number:02x}"]  # fmt: skip


def check_qemu() -> None:
    """UserError if QEMU is not installed."""
    if shutil.which(QEMU) is None:
        raise UserError(f"--backend qemu: {QEMU} is not installed; run: apt-get install qemu-system-x86")


def command(kernel: Kernel, job: Job) -> list[str]:
    """The command that boots ``kernel`` for a job, to be run in its scratch folder. UserError if QEMU is not installed."""
    check_qemu()
    shares = []
    for tag, folder, options in (
        ("root", "/", ",readonly=on"),
        ("guest", str((job.scratch / "guest").resolve()), ",readonly=on"),
        ("lib", str((job.scratch / "lib").resolve()), ",readonly=on"),
        ("out", str(job.scratch / "out"), ""),
    ):
        path = folder.replace(",", ",,")  # QEMU's way to write a comma
        shares += ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap{options}"]
    arguments = " ".join([
        "console=ttyS0", "reboot=t", NO_TIMER_CHECK, "quiet", "root=root", "rootfstype=9p",
        f"rootflags={MOUNT_OPTIONS},cache=loose", "ro", *process.PANIC_ARGUMENTS, *boot_options(kernel, job.ip_version), *job.arguments, "init=/bin/sh", "--", "-c",
        f'"{process.mount_command()} -t 9p -o ro,{MOUNT_OPTIONS},cache=loose guest /mnt && exec /mnt/init"',
    ])  # fmt: skip
    return [
        QEMU, "-machine", "q35", "-accel", kernel.acceleration, "-cpu", "host" if kernel.acceleration == "kvm" else "max",
        "-smp", "1", "-m", f"{(job.memory_bytes + EXTRA_MEMORY_BYTES) >> 20}M", "-nodefaults", "-no-reboot",
        "-display", "none", "-serial", "stdio", *shares, *job.devices, "-kernel", kernel.image, "-append", arguments,
    ]  # fmt: skip
