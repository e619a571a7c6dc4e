"""User-Mode Linux: in virtual time, where the guest's clock stands still while it computes; with a prompt in real time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bbrlab.experiment.machine import process
from bbrlab.experiment.machine.process import Job
from bbrlab.kernel.built import Kernel, boot_options
from bbrlab.kernel.confine import confined

# The guest's kernel mixes its command line into its entropy, and every step of a path walk moves its clock, so no path
# of this run or checkout may reach the guest: its process runs in the scratch folder, and hostfs, which opens files in
# the name of that process, knows the folder by this name.
HERE = "/proc/self/cwd"
# hostfs takes its folder as a bare mount option, which Debian 13's mount passes on only by the old system call.
OLD_MOUNT = "LIBMOUNT_FORCE_MOUNT2=always"
EPOCH_S = 1_700_000_000  # what the guest's wall clock shows at its start
# What programs do may hang on their addresses (the C library's mkstemp asks its stack's for a file name), and the addresses
# of those that the set-up starts would hang on what it drew before.
FIXED_ADDRESSES = "norandmaps"
# The TCP hash tables are walked for every sample; the default is thousands of empty buckets.
HASH_ENTRIES = 128
# A process of the guest hands over to its kernel through a futex, by a filter of system calls of its own, where the host lets
# it set one; else it is traced, as by kernels before this one. That takes more context switches and gives the same bytes.
SECCOMP, SECCOMP_FROM = "seccomp=auto", (6, 16)


def command(kernel: Kernel, job: Job) -> list[str]:
    """The command that boots ``kernel`` for a job, confined to its scratch folder, to be run in it."""
    # UML empties and uses uml_dir/umid: a folder where nothing else may ever stand.
    (job.scratch / "control").mkdir()
    (job.scratch / process.MEMORY).mkdir()
    if job.prompt is None:
        clock = ["time-travel=inf-cpu", f"time-travel-start={EPOCH_S}"]
    else:
        clock = [f"con1=fd:{job.prompt.guest_end}"]  # whoever types lives in real time
    by_seccomp = [SECCOMP] if _version(kernel) >= SECCOMP_FROM else []
    argv = [
        kernel.image, *by_seccomp, f"mem={job.memory_bytes >> 20}M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
        *clock, f"random_seed={job.seed}", FIXED_ADDRESSES,
        f"hostfs_writable={HERE}/out", f"thash_entries={HASH_ENTRIES}", "umid=guest", f"uml_dir={HERE}/control/",
        f"HERE={HERE}", "con=null", "con0=null,fd:1", "quiet", *process.PANIC_ARGUMENTS, *boot_options(kernel, job.ip_version), *job.arguments, "init=/bin/sh", "--", "-c",
        f'"{OLD_MOUNT} {process.mount_command()} -t hostfs -o ro,noatime,{HERE}/guest none /mnt && exec /mnt/init"',
    ]  # fmt: skip
    foreign = kernel.foreign or bool(kernel.own)
    reads = [(job.scratch / name).resolve() for name in ("guest", "lib")]
    if job.prompt and not foreign:  # whoever types may run programs of his own
        reads.append(Path("/"))
    return confined.uml(
        argv, _version(kernel), foreign=foreign, reads=reads,
        writes=[job.scratch / name for name in ("out", "control", process.MEMORY)],
    )  # fmt: skip


def _version(kernel: Kernel) -> tuple[int, ...]:
    """The first two numbers of a kernel's release."""
    return tuple(int(number) for number in kernel.release.split(".")[:2])


def is_supported() -> bool:
    """Whether this machine can run UML guests at all."""
    return sys.platform == "linux" and os.uname().machine == "x86_64"
