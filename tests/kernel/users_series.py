"""A user's patch series: the lab's own BBRv2 and BBRv3 as one patch on mainline-6.12, as somebody else might have made it.

In it BBRv3 registers "bbr", as Google's does, and mainline's BBRv1 "bbr1"; the option that builds it is off and needs IPv6; and what
it tells of itself has 52 bytes. `python -m tests.kernel.users_series FILE` writes it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bbrlab.kernel.specs import KernelSpec, find_spec, recipe
from tests.kernel.test_kernel_source import git

OPTION = "CONFIG_TCP_CONG_MYBBR"
NAMES = {"bbr3": "bbr", "bbr2": "bbr2", "bbr1": "bbr1"}
CCA_INFO = '''
struct mybbr_info {
\tstruct tcp_bbr_info bbr;
\t__u32\tbw_hi_lsb, bw_hi_msb, bw_lo_lsb, bw_lo_msb;
\t__u8\tmode, phase, unused, version;
\t__u32\tinflight_lo, inflight_hi, extra_acked;
};

/* Of Startup, Drain, DOWN, CRUISE, REFILL, UP, ProbeRTT. */
static const u8 mybbr_modes[] = { 0, 1, 2, 2, 2, 2, 3 };
static const u8 mybbr_phases[] = { 1, 2, 5, 6, 7, 4, 3 };

size_t bbrm_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
\tu32 asked = 1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1);
\tstruct mybbr_info *mine = (struct mybbr_info *)info;
\tstruct tcp_bbr_model_info all;

\tBUILD_BUG_ON(sizeof(*mine) != 52);
\tif (!bbrm_of(sk)->initialized || !(ext & asked))
\t\treturn 0;
\tbbrm_fill_info(sk, &all);
\tmemset(mine, 0, sizeof(*mine));
\tmine->bbr = all.bbr;
\tmine->bw_hi_lsb = all.max_bw_low;
\tmine->bw_hi_msb = all.max_bw_high;
\tmine->bw_lo_lsb = all.bw_lo_low;
\tmine->bw_lo_msb = all.bw_lo_high;
\tmine->mode = mybbr_modes[all.state];
\tmine->phase = mybbr_phases[all.state];
\tmine->version = all.version;
\tmine->inflight_lo = all.inflight_lo;
\tmine->inflight_hi = all.inflight_hi;
\tmine->extra_acked = all.extra_acked;
\t*attr = INET_DIAG_BBRINFO;
\treturn sizeof(*mine);
}
'''  # fmt: skip


def write_series(target: Path, *, damaged: bool = False) -> Path:
    """Write the series.

    Args:
        damaged: as for another version: the context of its change to mainline's tcp_bbr.c is not in 6.12.
    """
    ours, mine = find_spec("mainline-6.12")[1], find_spec("lab-6.12")[1]
    with tempfile.TemporaryDirectory() as folder:
        tree = _tree(Path(folder), ours, mine)
        _change(tree)
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", "tcp: a BBR of my own")
        text = git(tree, "format-patch", "-1", "--stdout")
    if damaged:
        text = text.replace(" \t.flags\t\t= TCP_CONG_NON_RESTRICTED,", " \t.flags\t\t= TCP_CONG_OF_6_4,", 1)
    target.write_text(text + "\n", encoding="utf-8")
    return target


def _tree(tree: Path, ours: KernelSpec, mine: KernelSpec) -> Path:
    """The files that the series changes, as mainline-6.12 has them, in a repository."""
    series = [p for p in recipe(mine).patches if p.parent.name == "bbr"]
    base = recipe(ours).patches
    touched = {n for p in [*base, *series] for n in re.findall(r"(?m)^--- a/(\S+)", p.read_text(encoding="utf-8"))}
    argv = ["tar", "-C", tree, "-xf", f"/usr/src/{ours.source.debian}.tar.xz", "--strip-components=1", "--wildcards"]
    subprocess.run([*argv, *(f"*/{name}" for name in sorted(touched))], check=True)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "source")
    git(tree, "am", "--quiet", *map(str, base))
    for patch in series:
        subprocess.run(["patch", "-p1", "-s", "-i", patch], cwd=tree, check=True)
    for path, target in recipe(mine).added:
        if path.parent.name == "bbr":
            (tree / target / path.name).write_bytes(path.read_bytes())
    return tree


def _change(tree: Path) -> None:
    """Make the lab's algorithms somebody else's."""

    def edit(name: str, *changes: tuple[str, str]) -> None:
        file = tree / "net/ipv4" / name
        text = file.read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text, (name, old)
            text = text.replace(old, new)
        file.write_text(text, encoding="utf-8")

    edit("tcp_bbr.c", ('.name\t\t= "bbr",', '.name\t\t= "bbr1",'))
    edit("tcp_bbr_sets.c", ('.ops.name = "bbr3",', '.ops.name = "bbr",'))
    edit(
        "Kconfig",
        ("TCP_CONG_BBR_MODEL", "TCP_CONG_MYBBR"),
        ('"BBRv2 and BBRv3 TCP"\n', '"A BBR of my own"\n\tdepends on IPV6\n'),
    )
    edit("Makefile", ("CONFIG_TCP_CONG_BBR_MODEL", OPTION))
    info = tree / "net/ipv4/tcp_bbr_info.c"
    text = info.read_text(encoding="utf-8")
    info.write_text(text[: text.index("size_t bbrm_get_info(")].rstrip() + "\n" + CCA_INFO, encoding="utf-8")


if __name__ == "__main__":
    write_series(Path(sys.argv[1]), damaged="--damaged" in sys.argv)
