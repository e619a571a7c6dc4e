"""Boots a new kernel once and records its algorithms, parameters and features."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.base.locks import owned_folder, remove_abandoned
from bbrlab.base.scratch import scratch_parent
from bbrlab.kernel.confine import confined
from bbrlab.kernel.specs import probe_file

PROBE_TIMEOUT_S = 120
KVM_TIMEOUT_S = 20
LOUD = "loglevel=7"  # the kernel's words up to KERN_INFO on its console: why it refuses something, and where it stopped
QEMU = "qemu-system-x86_64"
# Linux counts ticks at boot to see whether the timer's interrupt is wired up, and panics if too few came: of an emulated machine
# on busy cores that says nothing.
NO_TIMER_CHECK = "no_timer_check"
KVM = Path("/dev/kvm")
CONSOLE_BYTES = 1 << 20  # a kernel prints some ten kB
KILLED_S = 5  # how long a machine may take to go when it is killed: one that hangs within KVM may never
PREFIX = "bbrlab-probe-"  # of the folders that UML keeps its socket in; its path must be short
END = "probe end"


class BootFailed(UserError):
    """A new kernel did not finish the probe; the log has its output."""


def _probe_command(image: Path, arch: str, acceleration: str, folder: str, loud: bool) -> list[str]:
    probe, words = probe_file(), LOUD if loud else "quiet"
    if arch == "um":
        return [
            str(image),
            "mem=64M",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "time-travel=inf-cpu",
            f"init={probe}",
            "con=null",
            "con0=null,fd:1",
            words,
            f"uml_dir={folder}/",
        ]
    root = "root=root rootfstype=9p rootflags=trans=virtio,version=9p2000.L ro"
    qemu = (
        shutil.which(QEMU) or QEMU
    )  # by its path: it is started with the system's PATH, and may be installed elsewhere
    return [
        qemu,
        "-machine",
        "q35",
        "-accel",
        acceleration,
        "-cpu",
        "host" if acceleration == "kvm" else "max",
        "-m",
        "512M",
        "-nodefaults",
        "-no-reboot",
        "-display",
        "none",
        "-serial",
        "stdio",
        "-virtfs",
        "local,path=/,mount_tag=root,security_model=none,multidevs=remap,readonly=on",
        "-kernel",
        str(image),
        "-append",
        f"console=ttyS0 reboot=t panic=-1 {NO_TIMER_CHECK} {words} {root} init={probe}",
    ]


def _release(image: Path) -> tuple[int, ...]:
    """The first two numbers of a kernel's release, by its binary."""
    match = re.search(rb"Linux version (\d+)\.(\d+)", image.read_bytes())
    return tuple(int(number) for number in match.groups()) if match else (0, 0)


def _boot(argv: list[str], folder: Path, timeout_s: float) -> str:
    """A machine's output until its end, or until its time is over.

    A machine that hangs inside the host's kernel cannot be killed: after KILLED_S it is abandoned. OSError if it does not start.
    """
    with open(folder / "console", "w+b") as console:
        machine = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={"PATH": os.defpath, "TMPDIR": str(folder), "HOME": str(folder)},
            start_new_session=True,
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                machine.wait(timeout_s)
        finally:  # also if this is interrupted; and a kernel may have started what it did not end
            with contextlib.suppress(ProcessLookupError):
                os.killpg(machine.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                machine.wait(KILLED_S)
        console.seek(0)  # of the open file: in its place the folder may have another by now
        return console.read(CONSOLE_BYTES).decode(errors="replace")


@functools.cache
def kvm_fails(image: Path) -> str:
    """Why QEMU cannot boot a kernel with KVM here, in words; empty if it can. Takes up to KVM_TIMEOUT_S, once for a process.

    Only booting a machine shows it: on a virtual machine /dev/kvm may exist without effect.
    """
    if not KVM.exists():
        return f"there is no {KVM}"
    if not os.access(KVM, os.R_OK | os.W_OK):
        return f"{KVM} may not be used by this user (add the user to the group kvm)"
    parent = Path(tempfile.gettempdir())
    remove_abandoned(parent, PREFIX)
    with owned_folder(parent, PREFIX) as folder:
        output = _boot(_probe_command(image, "x86_64", "kvm", str(folder), False), folder, KVM_TIMEOUT_S)
    if END in output:
        return ""
    lines = output.strip().splitlines()
    how = f"did not come up within {KVM_TIMEOUT_S} s or ended before" + (f" ({lines[-1][:200]})" if lines else "")
    return f"{KVM} is there, but a machine with it {how}; inside a virtual machine its host must allow nested virtualisation"


def _try_out(image: Path, arch: str, own: bool) -> tuple[str, str]:
    """Boot a new kernel with the probe as its first program. Returns its output and QEMU's acceleration."""
    acceleration = ""
    if arch != "um":
        if shutil.which(QEMU) is None:
            raise UserError(
                f"a kernel for QEMU is tried out after it is built; run: apt-get install qemu-system-x86 (no {QEMU})"
            )
        acceleration = "tcg" if kvm_fails(image) else "kvm"
    parent = scratch_parent()
    remove_abandoned(parent, PREFIX)
    with owned_folder(parent, PREFIX) as folder:
        argv = _probe_command(image, arch, acceleration, str(folder), own)
        if arch == "um":
            argv = confined.uml(argv, _release(image), foreign=own, reads=[probe_file()], writes=[folder])
        try:
            return _boot(argv, folder, PROBE_TIMEOUT_S), acceleration
        except OSError as error:
            raise UserError(f"the built kernel does not start ({error.strerror}): {image}") from None


def probe_kernel(image: Path, arch: str, log: Path, *, own: bool = False) -> dict[str, Any]:
    """Boot a new kernel and ask it for its release, CCAs, their parameters and profiles. BootFailed if it does not boot.

    Args:
        image: the kernel.
        arch: as in kernels.yaml.
        log: gets the output at its end.
        own: whether it has others' algorithms. It then also prints notices, such as why it refuses to register one.
    """
    output, acceleration = _try_out(image, arch, own)
    with open(log, "a", encoding="utf-8") as file:
        file.write(output)
    release = re.search(r"probe release (\S+)", output)
    ccas = re.search(r"probe ccas (.*)", output)
    if END not in output or not release or not ccas:
        raise BootFailed(f"the built kernel does not boot; run 'bbrlab doctor', and see the end of {log}")
    parameters: dict[str, list[str]] = {}
    for module, parameter in re.findall(r"probe parameter /sys/module/tcp_(\w+)/parameters/(\w+)", output):
        parameters.setdefault(module, []).append(parameter)
    modules: dict[str, str] = {}
    for module, cca, options in re.findall(r"probe set tcp_(\w+) (\w+) (.*)", output):
        modules[cca] = module
        parameters[cca] = options.split()
    profiles: dict[str, list[str]] = {}
    for base, profile in re.findall(r"probe profile (\w+) (\S+)", output):
        profiles.setdefault(base, []).append(profile)
    return {
        "release": release[1],
        "ccas": ccas[1].split(),
        "parameters": parameters,
        "modules": modules,
        "profiles": profiles,
        "acceleration": acceleration,
    }
