"""Starts a program under the rules in its first argument, written by confined.command().

A program of its own, by Python without anything installed: the rules hold for the process that takes them on, and so must be taken on
between the start of a process and that of its program, where one with threads may run next to nothing. If a rule cannot be taken on,
nothing is started.
"""

import _thread  # what is imported here is imported at the start of each guest; threading, json and signal cost 10 ms
import ctypes
import marshal
import os
import struct
import sys

TYPE_CHECKING = False  # typing's own costs 10 ms as well
if TYPE_CHECKING:
    from typing import Any

PR_SET_NO_NEW_PRIVS, ADDR_NO_RANDOMIZE = 38, 0x0040000
ADD_RULE, RESTRICT_SELF, CREATE_RULESET, SECCOMP = 445, 446, 444, 317
# SPEC_ALLOW: without it older kernels slow down whoever has a filter
FILTER, SPEC_ALLOW, NEW_LISTENER = 1, 1 << 2, 1 << 3
RECEIVE, SEND, CONTINUE = 0xC0502100, 0xC0182101, 1  # ioctls of who listens, and its answer: go on
NOTICE_BYTES = 80
# struct sock_filter: load the number; if it is execve, ask whoever listens, and where nobody does refuse it; else allow.
ASK_TO_START = struct.pack(
    "<" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 59, 0x06, 0, 0, 0x7FC00000, 0x06, 0, 0, 0x7FFF0000
)
SIGPIPE, SIGXFSZ = 13, 25
FAILED = 125  # the exit status

libc = ctypes.CDLL(None, use_errno=True)
word, text = ctypes.c_long, ctypes.c_char_p


def call(what: str, number: int, *arguments: object) -> int:
    """A system call. SystemExit if it fails."""
    result = int(libc.syscall(word(number), *arguments))
    if result < 0:
        raise SystemExit(f"bbrlab: this machine's kernel refuses {what}: {os.strerror(ctypes.get_errno())}")
    return result


def hold_to_files(rules: "dict[str, Any]") -> None:
    """Landlock: landlock.Ruleset."""
    attributes = struct.pack("<QQQ", rules["files"], rules["network"], rules["scopes"])
    # A kernel that does not have the later ones takes them as long as they are 0.
    ruleset = call("a ruleset of Landlock", CREATE_RULESET, text(attributes), word(len(attributes)), word(0))
    for path, rights in rules["rules"]:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        call(
            f"a rule of Landlock for {os.fsdecode(path)}",
            ADD_RULE,
            word(ruleset),
            word(1),
            text(struct.pack("<Qi", rights, place)),
            word(0),
        )
        os.close(place)
    call("to be held by Landlock", RESTRICT_SELF, word(ruleset), word(0))
    os.close(ruleset)


def filter_calls(program: bytes, flags: int) -> int:
    """Seccomp. Returns what the system call did."""
    buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    return int(libc.syscall(word(SECCOMP), word(FILTER), word(flags | SPEC_ALLOW), text(head)))


def let_start(listener: "list[int]", ready: _thread.LockType) -> None:
    """Let the program start. With it this thread ends and its listener closes, and then nothing more is started."""
    ready.acquire()
    notice = ctypes.create_string_buffer(NOTICE_BYTES)
    libc.ioctl(listener[0], ctypes.c_ulong(RECEIVE), notice)
    answer = struct.pack("<QqiI", struct.unpack_from("<Q", notice)[0], 0, 0, CONTINUE)
    libc.ioctl(listener[0], ctypes.c_ulong(SEND), text(answer))


def main() -> None:
    """Take the rules on, and become the program."""
    for number in (SIGPIPE, SIGXFSZ):  # which Python ignores
        libc.signal(number, None)
    spec = marshal.loads(bytes.fromhex(sys.argv[1]))
    libc.prctl(PR_SET_NO_NEW_PRIVS, word(1), word(0), word(0), word(0))
    if spec["fixed_addresses"]:
        libc.personality(ctypes.c_ulong(ADDR_NO_RANDOMIZE))
    argv = [os.fsencode(part) for part in sys.argv[2:]]
    words = (text * (len(argv) + 1))(*argv, None)
    environment = [
        name + b"=" + value for name, value in os.environb.items() if name != b"LC_CTYPE"
    ]  # which Python adds
    settings = (text * (len(environment) + 1))(*environment, None)
    if spec["files"]:
        hold_to_files(spec["files"])
    if spec["once"]:
        listener: list[int] = []
        ready = _thread.allocate_lock()
        ready.acquire()
        _thread.start_new_thread(let_start, (listener, ready))
        listener.append(filter_calls(ASK_TO_START, NEW_LISTENER))
        if (
            listener[0] >= 0
        ):  # else a container listens already, and there may be one only: then files alone hold back starts
            ready.release()
    if spec["calls"] and filter_calls(spec["calls"], 0):
        raise SystemExit("bbrlab: this machine's kernel refuses a filter of system calls")
    libc.execve(text(spec["program"]), words, settings)  # Python's own would keep the lock that the thread needs
    raise SystemExit(f"bbrlab: {os.fsdecode(spec['program'])} does not start: {os.strerror(ctypes.get_errno())}")


try:
    main()
except SystemExit as error:
    print(error, file=sys.stderr, flush=True)
    os._exit(FAILED)
