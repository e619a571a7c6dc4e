"""The commands that start guests and compilers confined to what they need."""

from __future__ import annotations

import marshal
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from bbrlab.base import python
from bbrlab.kernel.confine import landlock, seccomp

START = Path(__file__).with_name("start.py")
PROGRAMS = [Path(folder) for folder in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")]
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
LOADER_CACHE = Path("/etc/ld.so.cache")
# Of /etc what a Linux user space looks for at every start, and settings that are no secrets. Nothing of the users', no keys, no passwords.
SETTINGS = """
    ld.so.cache ld.so.preload localtime timezone ssl/openssl.cnf resolv.conf hosts host.conf gai.conf nsswitch.conf services protocols
    networks ethertypes iproute2 selinux/config bash.bashrc inputrc profile terminfo alternatives debian_version os-release
""".split()
ACCOUNTS = ["passwd", "group"]  # names only, but the user's
ETC = Path("/etc")
MACHINE = [Path("/proc/cpuinfo"), Path("/proc/filesystems")]
REMEDY = "Run other people's algorithms as another user, or in a virtual machine (docs/howto/own_algorithm.md)"
SEPARATE_PROGRAMS_FROM, FILTERS_FROM = (6, 13), (6, 16)  # of UML: seccomp.guest_filter()


def command(
    argv: Sequence[str],
    files: landlock.Ruleset | None,
    calls: bytes,
    *,
    once: bool = False,
    fixed_addresses: bool = False,
) -> list[str]:
    """The command that starts a program under rules, in the environment that it is given.

    Args:
        argv: of the program.
        files: what it may do to files; None: no restriction.
        calls: the filter of its system calls; empty: none.
        once: it may start nothing more by execve.
        fixed_addresses: without address randomisation, so that it need not start itself again for that.
    """
    spec = {
        "files": files and asdict(files), "calls": calls, "once": once, "fixed_addresses": fixed_addresses,
        "program": os.fsencode(shutil.which(argv[0]) or argv[0]),
    }  # fmt: skip
    return python.isolated(START, marshal.dumps(spec).hex(), *argv)


def uml(
    argv: Sequence[str], release: Sequence[int], *, foreign: bool, reads: Iterable[Path], writes: Iterable[Path]
) -> list[str]:
    """The command that starts a kernel as User-Mode Linux.

    Args:
        argv: its command.
        release: the first numbers of its release.
        foreign: it has kernel code that is not of this project.
        reads: files and folders that it may read beside the system's.
        writes: folders that it may change freely.
    """
    separate = tuple(release) >= SEPARATE_PROGRAMS_FROM
    # Whose processes set their filters themselves sends them messages, and whoever sends can name whom to: not for foreign code.
    filters = tuple(release) >= FILTERS_FROM and not foreign
    allowed = [
        *_system([] if foreign else ACCOUNTS), *((path, landlock.READ) for path in reads),
        (Path(argv[0]), landlock.RUN), (LOADER, landlock.RUN), (Path("/dev/null"), landlock.DEVICE),
        *((path, landlock.WRITE | landlock.MAKE_SOCK) for path in writes),
    ]  # fmt: skip
    files, filtered = landlock.ruleset(allowed), seccomp.is_supported()
    calls = (
        seccomp.guest_filter(separate_programs=separate, filters=filters, traces=files is not None) if filtered else b""
    )
    return command(argv, files, calls, once=filtered and seccomp.filter_may_let_calls_go_on(), fixed_addresses=separate)


def compiler(argv: Sequence[str], tree: Path, temporary: Path, read: Path | None = None) -> list[str]:
    """The command that runs a step of a build, which may read the system's programs and headers, and read and write the tree.

    Args:
        argv: the step's command.
        tree: the source tree.
        temporary: a folder for its temporary files.
        read: another tree, which it may only read.
    """
    allowed = [
        *([(read, landlock.READ)] if read else []),
        *((folder, landlock.RUN) for folder in PROGRAMS), (LOADER_CACHE, landlock.READ),
        *((Path("/dev") / name, landlock.DEVICE) for name in ("null", "zero")), (Path("/dev/urandom"), landlock.READ),
        *((path, landlock.WRITE | landlock.EXECUTE | landlock.MAKE_SYM | landlock.MAKE_FIFO) for path in (tree, temporary)),
    ]  # fmt: skip
    return command(argv, landlock.ruleset(allowed), seccomp.build_filter() if seccomp.is_supported() else b"")


def _system(more: Sequence[str]) -> list[tuple[Path, int]]:
    """The files of this machine that every guest may read: programs, and a few settings."""
    return [
        (path, landlock.READ)
        for path in (*PROGRAMS, *MACHINE, *(ETC / name for name in (*SETTINGS, *more)), *ETC.glob("python3*"))
    ]


def lacking() -> list[str]:
    """What guests may do because this machine's kernel, or a container, cannot prevent it, in words; empty if nothing."""
    abi, filtered = landlock.version(), seccomp.is_supported()
    signals = "signals to your other processes"
    if not abi and not filtered:
        return ["your files, sockets, other programs and processes: it may do all that you may"]
    if not abi:
        return ["reading and writing your files", signals]
    not_held = ["emptying your files"] if abi < landlock.TRUNCATE_FROM else []
    not_held += [] if filtered else ["sockets, and the owners and modes of your files"]
    return not_held + ([signals] if abi < landlock.SCOPED_FROM else [])


def warning() -> str:
    """The warning for running others' kernel code on this machine; empty if it is fully confined."""
    return f"kernel code is not held back here from: {'; '.join(lacking())}. {REMEDY}" if lacking() else ""
