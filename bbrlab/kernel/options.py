"""The configuration of a kernel: option fragments, the user's own options, and those that its algorithms need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.kernel import beneath
from bbrlab.kernel.specs import KernelSpec, Recipe
from bbrlab.kernel.users import option_line

CCAS = "net/ipv4/Kconfig"  # where congestion controls have their options
LINE = re.compile(r"# (CONFIG_\w+) is not set|(CONFIG_\w+)=.*")


def fragment_of(spec: KernelSpec, parts: Recipe, tree: Path) -> str:
    """The lines that a kernel's configuration must have (of two lines about one option the later one counts): fragments, an
    option for each algorithm of ``names`` that has one in the source, the user's own."""
    lines = [line for path in parts.options for line in path.read_text(encoding="utf-8").splitlines()]
    there = set(lines)
    needed = (f"{option}=y" for option in cca_options(spec, tree))
    lines += [line for line in needed if line not in there]
    lines += [option_line(*setting) for setting in parts.settings.items()]
    return "\n".join(lines) + "\n"


def cca_options(spec: KernelSpec, tree: Path) -> list[str]:
    """The options of the algorithms that a kernel's names promise: CONFIG_TCP_CONG_BBR2 for bbr2."""
    named = {f"TCP_CONG_{cca.upper()}" for cca in spec.names.values()}
    text = beneath.read_text(tree, CCAS) if beneath.is_file(tree, CCAS) else ""
    there = re.findall(r"(?m)^config (TCP_CONG_\w+)", text)
    return [f"CONFIG_{option}" for option in there if option in named]


def check_config(name: str, wanted: str, settings: Iterable[str], tree: Path, origin: str) -> None:
    """UserError naming the wanted options that a tree's .config lacks, and why.

    Args:
        name: of the kernel.
        wanted: fragment_of().
        settings: the options of the user's own.
        tree: configured.
        origin: of the source, for messages.
    """
    lost = lost_options(wanted, beneath.read_text(tree, ".config"))
    if not lost:
        return
    own = set(settings)
    problems, depends = [], False
    for line in lost:
        option = _option_of(line)
        defined = list(_definitions(tree, option.removeprefix("CONFIG_")))
        if not defined:
            problems.append(f"{line}: {origin} has no option {option}")
        elif any(re.search(r"(?m)^[ \t]+(def_)?(bool|tristate)\b", text) for _, text in defined) and not re.fullmatch(
            r"# .*|.*=y", line
        ):
            problems.append(f"{line}: takes y or n ({defined[0][0]})")
        else:
            depends = True
            on = [text for file, text in defined for text in _depends(text)]
            why = (
                f"it depends on {' and on '.join(dict.fromkeys(on))}"
                if on
                else "something else that is on or off decides it"
            )
            problems.append(f"{line}: did not survive ({why}; {defined[0][0]})")
    if not depends:
        what = "correct them"
    elif any(_option_of(line) in own for line in lost):
        what = "give with --option what they depend on"
    else:
        what = "these are of kernels/options/: add what they depend on"
    raise UserError(f"kernel {name}: options that are not possible: {'; '.join(problems)}; {what}, or leave them out")


def lost_options(wanted: str, config: str) -> list[str]:
    """Lines of option fragments that a .config does not have. Of two lines about one option the later one counts."""
    have = set(config.splitlines())
    last: dict[str, str] = {}
    for line in wanted.splitlines():
        if LINE.fullmatch(line):
            last[_option_of(line)] = line
    return [
        line
        for option, line in last.items()
        if (any(h.startswith(f"{option}=") for h in have) if line.startswith("#") else line not in have)
    ]


def options_off(tree: Path) -> list[str]:
    """The options of congestion controls that a configured tree has and does not build."""
    text = beneath.read_text(tree, CCAS)
    config = beneath.read_text(tree, ".config").splitlines()
    there = [f"CONFIG_{option}" for option in re.findall(r"(?m)^config (TCP_CONG_\w+)", text)]
    return [option for option in there if f"{option}=y" not in config]


def _option_of(line: str) -> str:
    match = LINE.fullmatch(line)
    assert match
    return match[1] or match[2]


def _definitions(tree: Path, option: str) -> Iterator[tuple[str, str]]:
    """(file, text) of each place in a tree that defines an option."""
    for name in sorted(n for n in beneath.files(tree) if n.rpartition("/")[2].startswith("Kconfig")):
        text = beneath.read_text(tree, name)
        for match in re.finditer(rf"(?m)^(?:menu)?config {option}\n((?:[ \t].*\n|\n)*)", text):
            yield name, match[1]


def _depends(text: str) -> list[str]:
    return [line.strip() for line in re.findall(r"(?m)^[ \t]+depends on (.+)$", text)]
