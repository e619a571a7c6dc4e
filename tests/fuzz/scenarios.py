"""Mutated scenario files: whatever a user writes, it is understood or refused in words.

`python -m tests.fuzz.scenarios 3000` tries so many; tests/fuzz/test_fuzz.py some hundred. Every mutant is one of the shipped
files with one to three changes, from a fixed seed.
"""

from __future__ import annotations

import argparse
import copy
import random
import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.experiment.plan import make_plan
from bbrlab.scenario import schema
from bbrlab.scenario.load import load_scenario, points_of

CCAS = {"bbr1": "bbr", "bbr2": "bbr2", "bbr3": "bbr3", "cubic": "cubic", "reno": "reno", "dctcp": "dctcp"}
MODELS = (
    schema.Scenario, schema.Network, schema.Buffer, schema.Qdisc, schema.Jitter, schema.Policer, schema.Reverse, schema.Grants, schema.Link, schema.Change, schema.Hosts,
    schema.Flow, schema.Traffic, schema.Override,
)  # fmt: skip
FIELDS = sorted({field for model in MODELS for field in model.model_fields})
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -0.0, -1, 1, 2, 3.5, 1e-308, 1e-9, 1e18, 1e308, -1e308, 10**30, 2**32, 2**63, float("inf"),
    float("-inf"), float("nan"), "", " ", "x", "off", "on", "1e308", "inf", "nan", "10", "model", "../..", "/", "/dev/null",
    "\0", "\ud7ff", "a" * 300, "0x10", [], [[]], [1], [1, 2], [2, 1], [0, float("inf")], [float("nan")] * 2, [None, None],
    {}, {"bdp": 1e308}, {"bytes": 10**30}, {"packets": 10**12}, {"bdp": 1, "bytes": 2000}, {"kind": "red"}, {"kind": []},
    {"kind": "codel", "target_ms": 1e308}, {"kind": "slotted", "ms": 1e308}, {"a": {"b": {"c": 1}}}, {1: 2}, {"": 1},
    {"cca": "bbr1"}, {"cca": "cubic", "count": 1000}, {"offered_mbit": 1e308}, {"offered_mbit": 100_000},
    {"trace": "nowhere"}, {"mode": "collapsed"}, {"at_s": 1, "rate_mbit": 1e308}, {"at_s": 1, "rtt_ms": float("inf")},
    [{"at_s": 1, "rate_mbit": 1e308}], [{"at_s": float("nan"), "loss": 0.1}], {"network.buffer.bdp": [1e308]},
    {"network.rate_mbit": [1, 1e308]}, {"flows.0.cca": ["bbr1", 7]}, {"flows.-1.cca": ["bbr1"]}, {"flows.0": [None]},
    {"network": [1]}, {"": [1]}, {".": [1]}, {"flows": [[]]}, {"a": {"network.rtt_ms": 1e308}}, {"a": None}, {1: {"x": 1}},
)  # fmt: skip


def places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a tree of mappings and lists."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items):
        yield content, key
        yield from places(value)


def change(
    content: Any, rng: random.Random, values: tuple[Any, ...] = VALUES, fields: Sequence[str] = tuple(FIELDS)
) -> None:
    """One change in place: of the values one that the field does not expect, of the fields one that is not for there."""
    found = list(places(content))
    if not found:
        return
    container, key = rng.choice(found)
    value = copy.deepcopy(rng.choice(values))
    match rng.choice(("replace", "replace", "replace", "scale", "remove", "add", "rename", "move", "double")):
        case "scale" if isinstance(container[key], (int, float)):
            container[key] *= rng.choice((-1, 0, 1e-300, 0.1, 10, 1e6, 1e300))
        case "remove":
            del container[key]
        case "add" if isinstance(container, dict):
            container[rng.choice(fields)] = value
        case "rename" if isinstance(container, dict):
            container[rng.choice((f"{key}x", str(key)[1:], f"{key}.{rng.choice(fields)}", 7))] = container.pop(key)
        case "move":
            other, there = rng.choice(found)
            container[key] = copy.deepcopy(other[there]) if there in other or isinstance(other, list) and there < len(other) else value  # fmt: skip
        case "double" if isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
        case _:
            container[key] = value


def garble(text: str, rng: random.Random) -> str:
    """One change of the text itself."""
    lines = text.splitlines()
    number = rng.randrange(len(lines))
    match rng.choice(("drop", "double", "indent", "character", "cut", "word")):
        case "drop":
            del lines[number]
        case "double":
            lines.insert(number, lines[number])
        case "indent":
            lines[number] = " " * rng.randrange(5) + lines[number].strip()
        case "character":
            at = rng.randrange(len(lines[number]) + 1)
            lines[number] = lines[number][:at] + rng.choice("[]{}:,&*!|>'\"%@`\t#-?0\0\x85é") + lines[number][at:]
        case "cut":
            lines = [*lines[:number], lines[number][: len(lines[number]) // 2]]
        case "word":
            words = ("1e400", ".inf", ".nan", "-.inf", "2020-01-01", "!!python/object/apply:os.system [true]", "!!binary x", "<<: 1", "~",
                     "1:30:00", "0o17", "&a [*a]", "!!set {a}", "!!timestamp 2020-13-01", "=")  # fmt: skip
            lines[number] = re.sub(r": [^#]*", lambda _: f": {rng.choice(words)}", lines[number], count=1)
    return "\n".join(lines) + "\n"


def mutants(count: int, seed: int) -> Iterator[tuple[Path, str]]:
    """(the shipped file, the mutant's text), ``count`` times."""
    rng = random.Random(f"scenarios:{seed}")
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(paths.SCENARIOS.glob("*/*.yaml"))}
    for _ in range(count):
        path = rng.choice(list(texts))
        if rng.random() < 0.25:
            yield path, garble(texts[path], rng)
            continue
        content = yaml.safe_load(texts[path])
        if "traffic" in texts[path]:  # a workload of 15 minutes takes seconds to draw
            content |= {"duration_s": 5, "window_s": [0, 5]}
        for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
            change(content, rng)
        yield path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def attempt(text: str, folder: Path) -> str:
    """What becomes of a scenario's text: "accepted" or "refused". Anything but a UserError goes through."""
    path = folder / "mutant.yaml"
    path.write_text(text, encoding="utf-8")

    def load(**options: Any) -> str:
        try:
            scenario = load_scenario(path, **options)
            make_plan(points_of(scenario, str(path))[0], 1, CCAS)
        except UserError as error:
            if not str(error).strip() or len(str(error)) > 20_000:
                raise AssertionError(f"not one clear message: {str(error)[:200]!r}") from None
            return "refused"
        return "accepted"

    load(overrides={"flows.0.count": 2, "network.buffer.packets": 9})
    if cases := re.search(r"^cases:\n? *[{]?([^\s:]+):", text, re.MULTILINE):
        load(case=cases[1])
    return load()


def fuzz(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Try ``count`` mutants. Returns how many were accepted, refused or crashed, and what those that crashed were."""
    outcomes: Counter[str] = Counter()
    crashes = []
    with tempfile.TemporaryDirectory() as folder:
        for original, text in mutants(count, seed):
            try:
                outcomes[attempt(text, Path(folder))] += 1
            except Exception:
                outcomes["crashed"] += 1
                crashes.append(f"a mutant of {original.name}:\n{text}\n{traceback.format_exc(limit=-6)}")
    return outcomes, crashes


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    outcomes, crashes = fuzz(options.count, options.seed)
    for text in crashes[:20]:
        print(text)
    print(f"{options.count} mutants: " + ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items())))
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
