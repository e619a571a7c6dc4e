"""Boots a new kernel once and asks it what it can do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.base.owned import owned_folder, remove_abandoned
from bbrlab.kernel.specs import probe_file

PROBE_TIMEOUT_S = 120
KVM_TIMEOUT_S = 20
LOUD = "loglevel=7"  # the kernel's words up to KERN_INFO on its console: why it refuses something, and where it stopped
QEMU = "qemu-system-x86_64"
PREFIX = "bbrlab-probe-"  # of the folders that UML keeps its socket in; its path must be short


class BootFailed(UserError):
    """A new kernel did not come to the end of the probe; the log has what it printed."""


def _probe_command(image: Path, arch: str, acceleration: str, folder: str, loud: bool) -> list[str]:
    probe, words = probe_file(), LOUD if loud else "quiet"
    if arch == "um":
        return [str(image), "mem=64M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "time-travel=inf-cpu",
                f"init={probe}", "con=null", "con0=null,fd:1", words, f"uml_dir={folder}/"]  # fmt: skip
    root = "root=root rootfstype=9p rootflags=trans=virtio,version=9p2000.L ro"
    return [QEMU, "-machine", "q35", "-accel", acceleration, "-cpu", "host" if acceleration == "kvm" else "max", "-m", "512M",
            "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio",
            "-virtfs", "local,path=/,mount_tag=root,security_model=none,multidevs=remap,readonly=on",
            "-kernel", str(image), "-append", f"console=ttyS0 reboot=t panic=-1 {words} {root} init={probe}"]  # fmt: skip


def _try_out(image: Path, arch: str, loud: bool) -> tuple[str, str]:
    """Boot a new kernel with the probe as its first program. Returns what it printed and how QEMU was accelerated.

    KVM is only taken if the kernel boots with it: on a virtual machine it may be there and not work.
    """
    if arch == "um":
        accelerations = [""]
    elif shutil.which(QEMU) is None:
        raise UserError(
            f"a kernel for QEMU is tried out after it is built; run: apt-get install qemu-system-x86 (no {QEMU})"
        )
    else:
        accelerations = ["kvm", "tcg"] if os.access("/dev/kvm", os.R_OK | os.W_OK) else ["tcg"]
    output = ""
    parent = Path(tempfile.gettempdir())
    remove_abandoned(parent, PREFIX)
    for acceleration in accelerations:
        timeout_s = KVM_TIMEOUT_S if acceleration == "kvm" else PROBE_TIMEOUT_S
        with owned_folder(parent, PREFIX) as folder:
            argv = _probe_command(image, arch, acceleration, str(folder), loud)
            try:
                done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, timeout=timeout_s, check=False)  # fmt: skip
                output = done.stdout
            except subprocess.TimeoutExpired as error:
                output = (error.stdout or b"").decode(errors="replace")
            except OSError as error:
                raise UserError(f"the built kernel does not start ({error.strerror}): {image}") from None
        if "probe end" in output:
            break
    return output, acceleration


def probe_kernel(image: Path, arch: str, log: Path, *, loud: bool = False) -> dict[str, Any]:
    """Boot a new kernel and ask it for its release, CCAs and their parameters.

    Args:
        image: the kernel.
        arch: as in kernels.yaml.
        log: what it prints is written to its end.
        loud: have it print what it notices, too: why it refuses to register an algorithm, for example.

    Raises:
        BootFailed: if it does not boot.
    """
    output, acceleration = _try_out(image, arch, loud)
    with open(log, "a", encoding="utf-8") as file:
        file.write(output)
    if "probe end" not in output:
        raise BootFailed(f"the built kernel does not boot; run 'bbrlab doctor', and see the end of {log}")
    parameters: dict[str, list[str]] = {}
    for module, parameter in re.findall(r"probe parameter /sys/module/tcp_(\w+)/parameters/(\w+)", output):
        parameters.setdefault(module, []).append(parameter)
    modules: dict[str, str] = {}
    for module, cca, options in re.findall(r"probe set tcp_(\w+) (\w+) (.*)", output):
        modules[cca] = module
        parameters[cca] = options.split()
    release = re.search(r"probe release (\S+)", output)
    ccas = re.search(r"probe ccas (.*)", output)
    assert release and ccas
    return {"release": release[1], "ccas": ccas[1].split(), "parameters": parameters, "modules": modules,
            "acceleration": acceleration}  # fmt: skip
