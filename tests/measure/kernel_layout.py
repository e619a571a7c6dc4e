"""Where the kernel's structures have their fields, as the compiler sees them in the kernel's own headers (linux-libc-dev)."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from bbrlab.base import paths

HEADERS = ("stddef.h", "stdio.h", "linux/inet_diag.h", "linux/netlink.h", "linux/rtnetlink.h", "linux/pkt_sched.h",
           "linux/gen_stats.h", "linux/tcp.h")  # fmt: skip
COMPILER = next((c for c in ("cc", "gcc", "gcc-12", "gcc-14", "clang") if shutil.which(c)), None)
BBR_PATCHES = paths.ROOT / "kernels/patches"


@functools.cache
def constants(expressions: tuple[str, ...], preamble: str = "") -> dict[str, int]:
    """{C expression: its value} of integer constants, with the kernel's headers."""
    lines = "\n".join(f'printf("%lld\\n", (long long)({e}));' for e in expressions)
    includes = "\n".join(f"#include <{h}>" for h in HEADERS)
    with tempfile.TemporaryDirectory() as name:
        source, program = Path(name) / "layout.c", Path(name) / "layout"
        source.write_text(f"{includes}\n{preamble}\nint main(void) {{\n{lines}\nreturn 0;\n}}\n", encoding="utf-8")
        subprocess.run([str(COMPILER), "-o", str(program), str(source)], check=True, capture_output=True, text=True)
        found = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(expressions, map(int, found), strict=True))


def fields(struct: str, names: tuple[str, ...], preamble: str = "") -> dict[str, tuple[int, int]]:
    """{field: (offset, size in bytes)} of a structure; a bit field's neighbours must be asked for in its place."""
    ask = [f"offsetof(struct {struct}, {n})" for n in names] + [f"sizeof(((struct {struct} *)0)->{n})" for n in names]
    found = list(constants(tuple(ask), preamble).values())
    return {n: (found[i], found[i + len(names)]) for i, n in enumerate(names)}
