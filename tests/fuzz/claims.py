"""Mutated claims files: whatever a user writes, it is understood and judged, or refused in words.

`python -m tests.fuzz.claims 1000` tries so many; tests/fuzz/test_fuzz.py some hundred. Every mutant is a few statements of one
of the shipped files with one to three changes, from a fixed seed.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from bbrlab.base.errors import UserError
from bbrlab.claims import schema
from bbrlab.claims.expressions import FUNCTIONS
from bbrlab.claims.judge import judge_all, verdict_frame
from bbrlab.claims.load import claims_files, claims_of, load_statements
from bbrlab.claims.statement_verdict import statement_frame
from bbrlab.claims.wanted_seeds import wanted_seeds
from bbrlab.results.figures import Figure, figures_at
from tests.fuzz.scenarios import garble, places
from tests.made_up import table

MODELS = (schema.Statement, schema.Claim, schema.Term, schema.Expectation, schema.Finding)
FIELDS = sorted({field for model in MODELS for field in model.model_fields} | {"each", "rows"})
STATEMENTS = 3  # of a mutant
EXPRESSIONS = (
    "", "loss", "loss +", "crossing(loss)", "trend(loss)", "1 / 0", "loss / (loss - loss)", "2 ** loss", "2 ** 99", "loss ** .5",
    "max()", "mean(loss, loss)", "tree_accuracy(loss, loss)", "tree_accuracy(1, 2, 3)", "grouped_rms(loss, count)",
    "published", "ware - published", "fluid", "a.b.c", "lambda: 1", "__import__('os')", "1e400", "9" * 600, "(" * 200, "-" * 300 + "1",
    "min(1, loss)", "first(loss) - last(ware)", "'a'", "loss if 1 else 2", "rms(1e308 * 1e308)", "abs(-loss)", "bbr.loss",
    *(f"{name}({', '.join(['share_of_capacity'] * function.arity[0])})" for name, function in FUNCTIONS.items()),
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 1e308, -1e308, 10**400, float("inf"), float("nan"), "", " ", "x", "é" * 200, "\0", "{", "{}",
    "{bbr_flows}", "{nobody}", "{{x}}", "{share_of_capacity} + 1", "PAPER/FIGURE", "../..", "fig2a", "sarpkaya2025/fig2a",
    "sarpkaya2025/fig2a:share_of_capacity", "sarpkaya2025/fig2a:id", ":", "/:x", "rising", "SA-1", "sa-1", "SA-{bbr_flows}",
    [], [[]], [None], [1, 2], [2, 1], ["loss", "loss"], ["loss"], [float("nan")] * 2, {}, {"": 1}, {1: 2}, {"a": None},
    {"figure": "fig2a"}, {"figure": 7}, {"x": {"figure": "sarpkaya2025/fig2a"}}, {"figure": "sarpkaya2025/fig2a", "along": "flows.0.count"},
    {"figure": "sarpkaya2025/fig2a", "where": {"flows.0.count": 1}, "along": []}, {"figure": "tang/fig2", "where": {"case": ["a", 1, None]}},
    {"value": 1, "within": 1}, {"value": 0, "within_percent": 5}, {"trend": "rising"}, {"order": ["loss", "loss"]}, {"range": [1, 0]},
    {"above": 1e308}, {"at_most": "1 / 0"}, {"below": "{nobody}"}, {"range": ["1 +", 2]}, {"text": "a finding that is told", "shows": "nothing at all"},
    {"bbr_flows": 1}, {"bbr_flows": [1, "x", None, {}]}, {"kernel": 4.15}, {"case": "case"}, *EXPRESSIONS,
)  # fmt: skip


def _change(content: Any, rng: random.Random) -> None:
    """One change in place."""
    found = list(places(content))
    if not found:
        return
    container, key = rng.choice(found)
    value = copy.deepcopy(rng.choice(VALUES))
    match rng.choice(
        (
            "replace",
            "replace",
            "expression",
            "remove",
            "add",
            "rename",
            "move",
            "double",
            "characters",
            "scale",
            "scale",
        )
    ):
        case "expression":
            for place, name in found:
                if name in ("metric", "value", "within", "above", "below") and rng.random() < 0.5:
                    place[name] = rng.choice(EXPRESSIONS)
        case "scale":
            for place, name in found:
                if isinstance(place[name], int | float) and rng.random() < 0.5:
                    with contextlib.suppress(OverflowError):  # of a whole number that no float can hold
                        place[name] *= rng.choice((-1, 0, 1e-300, 0.1, 10, 1e300))
        case "remove":
            del container[key]
        case "add" if isinstance(container, dict):
            container[rng.choice(FIELDS)] = value
        case "rename" if isinstance(container, dict):
            container[rng.choice((f"{key}x", str(key)[1:], rng.choice(FIELDS), 7))] = container.pop(key)
        case "move":
            other, there = rng.choice(found)
            if there in other or isinstance(other, list) and there < len(other):
                container[key] = copy.deepcopy(other[there])
        case "double" if isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
        case "characters" if isinstance(container[key], str):
            at = rng.randrange(len(container[key]) + 1)
            container[key] = container[key][:at] + rng.choice("{}()[]*/+-.,:'\"\0 é0x") + container[key][at + 1 :]
        case _:
            container[key] = value


def mutants(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """(paper, the mutant's text), ``count`` times."""
    rng = random.Random(f"claims:{seed}")
    shipped = {p.parent.name: yaml.safe_load(p.read_text(encoding="utf-8")) for p in claims_files()}
    for _ in range(count):
        paper = rng.choice(list(shipped))
        content = copy.deepcopy(rng.sample(shipped[paper], min(STATEMENTS, len(shipped[paper]))))
        garbled = rng.random() < 0.2
        for _ in range(0 if garbled else rng.choice((1, 1, 1, 2, 3))):
            _change(content, rng)
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        yield paper, garble(text, rng) if garbled else text


@cache
def _runs() -> tuple[list[Figure], dict[str, pd.DataFrame]]:
    """Quick's figures with made-up tables."""
    figures = figures_at("quick")
    return figures, {f.id: table(f, lambda point, seed: 0.5 + seed / 100) for f in figures}


def outcome(paper: str, text: str, folder: Path) -> str:
    """ "understood" or "refused". Any other exception than UserError is the caller's."""
    file = folder / paper / "claims.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    try:
        statements = load_statements([file])
    except UserError as error:
        assert str(file) in str(error), f"the message does not name the file: {error}"
        return "refused"
    figures, tables = _runs()
    verdicts = judge_all(claims_of(statements), figures, tables, folder)
    verdict_frame(verdicts)
    statement_frame(statements, verdicts)
    for figure in figures:
        wanted_seeds(figure, tables[figure.id], claims_of(statements))
    return "understood"


def try_all(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How many mutants were understood and refused, and the tracebacks of those that were neither."""
    found: Counter[str] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (paper, text) in enumerate(mutants(count, seed)):
            try:
                found[outcome(paper, text, Path(folder))] += 1
            except Exception:
                failures.append(f"mutant {number} of {paper}:\n{text}\n{traceback.format_exc()}")
    return found, failures


def main() -> int:
    """Try many mutants; the exit code is 1 if one was neither understood nor refused in words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=17)
    options = parser.parse_args()
    found, failures = try_all(options.count, options.seed)
    print("\n".join(failures))
    print(f"{dict(found)}, {len(failures)} neither")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
