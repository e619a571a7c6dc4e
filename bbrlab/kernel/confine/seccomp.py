"""Filters of system calls (seccomp), as programs for the kernel (Documentation/userspace-api/seccomp_filter.rst), for x86-64."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from collections.abc import Iterable

SECCOMP, GET_ACTION_AVAIL = 317, 2
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
ARCH_X86_64 = 0xC000003E
LOAD, EQUAL, ANY_BIT, ABOVE, RETURN = (
    0x20,
    0x15,
    0x45,
    0x25,
    0x06,
)  # BPF_LD|W|ABS, BPF_JMP|JEQ, |JSET, |JGT (all |K), BPF_RET
NUMBER, ARCH, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data

# A guest's kernel and its helpers get by with these. All else is refused, so that what a later Linux brings is, too: setsid and setpgid
# as well, so that all that a guest starts stays in its group, and ends with it. Those that come often stand first: Linux before 5.11 goes
# through the list.
PLAIN = """
    wait4 pread64 pwrite64 futex mmap munmap mprotect access statx readlink read write close rt_sigreturn rt_sigprocmask
    rt_sigaction epoll_wait poll lseek getdents64 open openat stat fstat lstat newfstatat brk mremap msync madvise readv writev preadv
    pwritev pipe pipe2 select pselect6 ppoll sched_yield dup dup2 dup3 pause nanosleep clock_nanosleep getitimer setitimer alarm getpid
    getppid gettid getuid geteuid getgid getegid getpgrp getpgid getsid fork vfork exit exit_group uname flock fsync
    fdatasync truncate ftruncate getdents getcwd chdir rename renameat renameat2 mkdir mkdirat rmdir creat unlink unlinkat readlinkat umask
    gettimeofday time times clock_gettime clock_getres getrlimit getrusage setrlimit sysinfo rt_sigpending rt_sigtimedwait rt_sigsuspend
    sigaltstack statfs fstatfs arch_prctl sched_getaffinity epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2
    set_tid_address set_robust_list restart_syscall fadvise64 fallocate timer_create timer_settime timer_gettime timer_getoverrun
    timer_delete faccessat faccessat2 signalfd signalfd4 eventfd eventfd2 timerfd_create timerfd_settime timerfd_gettime getrandom
    memfd_create rseq close_range fcntl bind recvfrom recvmsg getsockname tgkill
""".split()
NUMBERS = {
    name: number
    for number, name in (
        pair.split(":")
        for pair in """
    0:read 1:write 2:open 3:close 4:stat 5:fstat 6:lstat 7:poll 8:lseek 9:mmap 10:mprotect 11:munmap 12:brk 13:rt_sigaction
    14:rt_sigprocmask 15:rt_sigreturn 16:ioctl 17:pread64 18:pwrite64 19:readv 20:writev 21:access 22:pipe 23:select 24:sched_yield
    25:mremap 26:msync 28:madvise 29:shmget 32:dup 33:dup2 34:pause 35:nanosleep 36:getitimer 37:alarm 38:setitimer 39:getpid 41:socket
    44:sendto 45:recvfrom 46:sendmsg 47:recvmsg 49:bind 51:getsockname 53:socketpair 56:clone 57:fork 58:vfork 59:execve 60:exit
    61:wait4 62:kill 63:uname 64:semget 68:msgget 72:fcntl 73:flock 74:fsync 75:fdatasync 76:truncate 77:ftruncate 78:getdents 79:getcwd
    80:chdir 82:rename 83:mkdir 84:rmdir 85:creat 87:unlink 89:readlink 95:umask 96:gettimeofday 97:getrlimit 98:getrusage 99:sysinfo
    100:times 101:ptrace 102:getuid 104:getgid 107:geteuid 108:getegid 109:setpgid 110:getppid 111:getpgrp 112:setsid 121:getpgid
    124:getsid 127:rt_sigpending 128:rt_sigtimedwait 129:rt_sigqueueinfo 130:rt_sigsuspend 131:sigaltstack 135:personality 137:statfs
    138:fstatfs 157:prctl 158:arch_prctl 160:setrlimit 165:mount 186:gettid 200:tkill 201:time 202:futex 203:sched_setaffinity
    204:sched_getaffinity 213:epoll_create 217:getdents64 218:set_tid_address 219:restart_syscall 221:fadvise64 222:timer_create
    223:timer_settime 224:timer_gettime 225:timer_getoverrun 226:timer_delete 228:clock_gettime 229:clock_getres 230:clock_nanosleep
    231:exit_group 232:epoll_wait 233:epoll_ctl 234:tgkill 240:mq_open 248:add_key 249:request_key 250:keyctl 257:openat 258:mkdirat
    262:newfstatat 263:unlinkat 264:renameat 267:readlinkat 269:faccessat 270:pselect6 271:ppoll 272:unshare 273:set_robust_list
    281:epoll_pwait 282:signalfd 283:timerfd_create 284:eventfd 285:fallocate 286:timerfd_settime 287:timerfd_gettime 289:signalfd4
    290:eventfd2 291:epoll_create1 292:dup3 293:pipe2 295:preadv 296:pwritev 297:rt_tgsigqueueinfo 298:perf_event_open 302:prlimit64
    308:setns 310:process_vm_readv 311:process_vm_writev 316:renameat2 317:seccomp 318:getrandom 319:memfd_create 321:bpf 322:execveat
    323:userfaultfd 332:statx 334:rseq 424:pidfd_send_signal 425:io_uring_setup 434:pidfd_open 435:clone3 436:close_range
    438:pidfd_getfd 439:faccessat2 440:process_madvise 441:epoll_pwait2
    """.split()
    )
}
ATTACH, SEIZE = (
    16,
    0x4206,
)  # the requests of ptrace by which a process gets hold of another; a child asks to be traced itself
NEW_NAMESPACES = 0x7E020000  # flags of clone
AF_UNIX = 1
# Of terminals, and whether bytes are waiting; not those by which a file is marked, or typed into a terminal.
IOCTLS = [0x5401, 0x5402, 0x5403, 0x5404, 0x5413, 0x5414, 0x541B, 0x5421, 0x5450, 0x5451, 0x5452]
PRCTLS = [1, 2, 4, 15, 16, 38]  # PR_SET_PDEATHSIG, GET_, PR_SET_DUMPABLE, PR_SET_NAME, GET_, PR_SET_NO_NEW_PRIVS
SET_SECCOMP = 22
NO_RANDOM_ADDRESSES = [0x0040000, 0xFFFFFFFF]  # of personality: what a newer UML asks for, and the question what it has
AT_EMPTY_PATH = 0x1000  # of execveat: the program is an open file
# setsid and setpgid, so that all that a step starts stays in its group, and ends with it.
BUILDS_NOT = """
    socket socketpair ptrace process_vm_readv process_vm_writev process_madvise io_uring_setup bpf keyctl add_key request_key mount
    unshare setns perf_event_open userfaultfd pidfd_open pidfd_getfd pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo shmget semget
    msgget mq_open setsid setpgid
""".split()

Instruction = tuple[int, int, int, int]


def is_supported() -> bool:
    """Whether this machine's kernel filters system calls, and nothing forbids it."""
    action = ctypes.c_uint32(ERRNO)
    return int(ctypes.CDLL(None).syscall(SECCOMP, GET_ACTION_AVAIL, 0, ctypes.byref(action))) == 0


def filter_may_let_calls_go_on() -> bool:
    """Whether a filter's listener may let a call continue: from Linux 5.5 on."""
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2]) >= (5, 5)


def guest_filter(*, separate_programs: bool, filters: bool, traces: bool) -> bytes:
    """The filter of a guest's process.

    Args:
        separate_programs: it starts each process of the guest by execveat, from a program in memory (UML since Linux 6.13).
        filters: these processes set a filter of their own and get their memory over a socket (UML since Linux 6.16).
        traces: whom it may trace, ptrace itself sees to, as it does under Landlock. An argument is looked at anew in each call, and UML makes
            more of these than of all others: with it the filter costs twice as much.
    """
    plain = [*PLAIN, *(["sendmsg", "seccomp"] if filters else [])]
    prctls = [*PRCTLS, *([SET_SECCOMP] if filters else [])]
    program = [
        *(_block("ptrace", [(RETURN, 0, 0, ALLOW)]) if traces else _unless("ptrace", 0, [ATTACH, SEIZE])),
        *_only("ioctl", 1, IOCTLS),
        *_only("socket", 0, [AF_UNIX]),
        *_only("socketpair", 0, [AF_UNIX]),
        *_only("prctl", 0, prctls),
        *_only("personality", 0, NO_RANDOM_ADDRESSES),
        *_only("prlimit64", 0, [0]),  # of itself
        *_only("sched_setaffinity", 0, [0]),
        *_block("clone", [(LOAD, 0, 0, _low(0)), (ANY_BIT, 1, 0, NEW_NAMESPACES), (RETURN, 0, 0, ALLOW)]),
        *_block("kill", [(LOAD, 0, 0, _low(0)), (EQUAL, 2, 0, 0), (ABOVE, 1, 0, 0x7FFFFFFF), (RETURN, 0, 0, ALLOW)]),  # one process
        # To whom the socket is connected, if it is: nobody is named.
        *_block("sendto", [(LOAD, 0, 0, _low(4)), (EQUAL, 0, 3, 0), (LOAD, 0, 0, _low(4) + 4), (EQUAL, 0, 1, 0), (RETURN, 0, 0, ALLOW)]),
        *_block("execve", [(RETURN, 0, 0, ALLOW)]),  # with which it starts; start.py holds back a second one
        *(_block("execveat", [(LOAD, 0, 0, _low(4)), (ANY_BIT, 0, 1, AT_EMPTY_PATH), (RETURN, 0, 0, ALLOW)]) if separate_programs else []),
        *_block("clone3", [(RETURN, 0, 0, ERRNO | errno.ENOSYS)]),  # its flags lie in memory; the C library then takes clone
        *(instruction for name in plain for instruction in _block(name, [(RETURN, 0, 0, ALLOW)])),
    ]  # fmt: skip
    return _assembled(program, ERRNO | errno.EPERM)


def build_filter() -> bytes:
    """The filter of compilers: no sockets, nothing of other processes, and no group of its own. A compiler needs too many calls to list them."""
    program = [
        *_block("clone", [(LOAD, 0, 0, _low(0)), (ANY_BIT, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, ERRNO | errno.EPERM)]),
        *_block("clone3", [(RETURN, 0, 0, ERRNO | errno.ENOSYS)]),
        *(i for name in BUILDS_NOT for i in _block(name, [(RETURN, 0, 0, ERRNO | errno.EPERM)])),
    ]
    return _assembled(program, ALLOW)


def _low(argument: int) -> int:
    """The offset of an argument's lower half; the kernel reads no more of an int."""
    return ARGUMENTS + 8 * argument


def _block(name: str, body: list[Instruction]) -> list[Instruction]:
    """``body`` for one system call: it decides, or runs through to what comes next, where the number is loaded anew."""
    again: list[Instruction] = [(LOAD, 0, 0, NUMBER)] if any(code == LOAD for code, *_ in body) else []
    return [(EQUAL, 0, len(body) + len(again), int(NUMBERS[name])), *body, *again]


def _only(name: str, argument: int, values: Iterable[int]) -> list[Instruction]:
    """A system call that is allowed with these values of an argument."""
    tests: list[Instruction] = [i for value in values for i in ((EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW))]
    return _block(name, [(LOAD, 0, 0, _low(argument)), *tests])


def _unless(name: str, argument: int, values: list[int]) -> list[Instruction]:
    """A system call that is allowed with all but these values of an argument."""
    tests: list[Instruction] = [(EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return _block(name, [(LOAD, 0, 0, _low(argument)), *tests, (RETURN, 0, 0, ALLOW)])


def _assembled(program: Iterable[Instruction], otherwise: int) -> bytes:
    """The filter in the kernel's form. Calls by another table of numbers (32 bits, x32) are refused."""
    whole: list[Instruction] = [
        (LOAD, 0, 0, ARCH), (EQUAL, 1, 0, ARCH_X86_64), (RETURN, 0, 0, ERRNO | errno.EPERM), (LOAD, 0, 0, NUMBER),
        (ABOVE, 0, 1, 0x3FFFFFFF), (RETURN, 0, 0, ERRNO | errno.EPERM), *program, (RETURN, 0, 0, otherwise),
    ]  # fmt: skip
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in whole)
