"""Mutated rubrics, config/kernels.yaml and config/config.yaml: whatever a user writes, it is understood or refused in words.

`python -m tests.fuzz.files rubric 2000` (or kernels, config) tries so many; tests/fuzz/test_fuzz.py a hundred of each. Every mutant
is a file of this package with one to three changes, from a fixed seed.
"""

from __future__ import annotations

import argparse
import copy
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.kernel import specs
from bbrlab.kernel.built import kernel_identity
from bbrlab.kernel.sources import Source
from bbrlab.results import config
from bbrlab.results.figures import figures_at, runs_of
from bbrlab_apps.grading import load, rubric
from bbrlab_apps.grading.personal import personal
from tests.fuzz.scenarios import VALUES, change, garble
from tests.graded import RUBRIC

WORDS = {
    "rubric": (
        "{rate_mbit}", "{nobody}", "{{x}}", "{rate_mbit", "{rate_mbit} / 0", "2 ** {rtt_ms}", "1 +", "max()", "{rate_mbit} {rtt_ms}", "9" * 500,
        {"low": 1, "high": 2, "step": 1e-308}, {"low": 2, "high": 1, "step": 1}, {"low": 1, "high": 1e308, "step": 1e300}, {"one_of": []},
        {"one_of": [None]}, {"one_of": [float("nan")]}, {"one_of": [{}, []]}, {"low": True, "high": 3, "step": 1}, {"low": 1, "high": 10**30, "step": 1},
        {"flows": [{"cca": "bbr1", "traffic": {"trace": "/etc/passwd"}}]}, {"sweep": {"network.rate_mbit": ["{rate_mbit}"]}}, {"verdict_of": "share"},
        {"range": [1, 0]}, {"where": {"flows.0.cca": "bbr1"}}, {"along": "network.rate_mbit"}, {"published": "tang/fig2:x"}, ["a", "a"], "share", "some",
        {"network.rate_mbit": {"low": 1, "high": 9}}, {"nobody.here": {"low": 1, "high": 9}}, {"id": "share", "says": "anything at all"},
    ),
    "kernels": (
        "lab-6.12", "linux-source-6.12", "../..", "/etc", "-x", "--upload-pack=true", "um", "x86_64", "a b", "\0", "é" * 200, "bbr", "guest.config",
        {"debian": "linux-source-6.12"}, {"debian": "none"}, {"git": "https://localhost/x"}, {"git": "/dev/null", "branch": "-x"}, {"debian": "a", "git": "b"},
        {"git": "x", "commit": "0" * 40}, {"debian": "x", "version": "1", "sha256": "0" * 64}, {"version": "../1"}, {"net/ipv4": "bbr"}, {"../..": "bbr"},
        {"bbr1": "bbr"}, {"": ""}, {"bbr9": "x" * 99}, ["um", "um"], ["../../mininet"], ["\0"], ["a" * 300], [""],
    ),
    "config": (
        "smoke", "quick", "full", "huge", "tang", "tang/fig2", "nobody/fig1", "/", "lab-6.12", ["tang/fig2"], ["tang", "tang"], ["nobody"], [7], ["", None],
        {"description": "x", "trials": 1}, {"description": "x"}, {"trials": 0}, {"seeds_cap": 10**9}, {"seeds_packets": 1e-308}, {"smoke": {"description": "x"}},
    ),
}  # fmt: skip
MODELS = {
    "rubric": (rubric.Rubric, rubric.Values, rubric.CheckPoints, rubric.Limits, rubric.JudgedClaim, rubric.Question),
    "kernels": (specs.KernelsFile, specs.KernelSpec, Source),
    "config": (config.Config, config.Scale),
}


def originals(kind: str) -> list[str]:
    """The texts of which mutants are made."""
    if kind == "rubric":
        files = sorted((paths.ROOT / "courses").glob("*/rubric.yaml"))
        return [yaml.safe_dump(RUBRIC, sort_keys=False), *(f.read_text(encoding="utf-8") for f in files)]
    return [(paths.CONFIG / f"{kind}.yaml").read_text(encoding="utf-8")]


def mutants(kind: str, count: int, seed: int) -> Iterator[str]:
    """The mutants' texts."""
    rng = random.Random(f"{kind}:{seed}")
    texts = originals(kind)
    values = (*VALUES, *WORDS[kind] * 2)
    fields = sorted({field for model in MODELS[kind] for field in model.model_fields})
    for _ in range(count):
        text = rng.choice(texts)
        if rng.random() < 0.25:
            yield garble(text, rng)
            continue
        content = copy.deepcopy(yaml.safe_load(text))
        for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
            change(content, rng, values, fields)
        yield yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def use_rubric(path: Path) -> None:
    """As ``bbrlab assign`` and ``bbrlab grade`` read it."""
    loaded = load.load_rubric(path)
    for student in ("ada", "Zoë 7"):
        own = personal(loaded, student)
        yaml.safe_dump(own.assignment.scenario.model_dump(exclude_unset=True), sort_keys=False)
        assert len(own.seeds) == loaded.seeds


def use_kernels(path: Path) -> None:
    """As ``bbrlab kernel list`` and the campaign's rules read it."""
    found = specs.load_specs(path)
    for spec in found.kernels.values():
        specs.recipe(spec)
    kernel_identity(found.default)


def use_config(path: Path) -> None:
    """As a campaign reads it."""
    for figure in figures_at(config.load_config(path).scale):
        runs_of(figure)


USES: dict[str, Callable[[Path], None]] = {"rubric": use_rubric, "kernels": use_kernels, "config": use_config}


def attempt(use: Callable[[Path], None], path: Path, text: str) -> str:
    """What becomes of a text: "understood" or "refused". Anything but a UserError goes through."""
    path.write_text(text, encoding="utf-8")
    try:
        use(path)
    except UserError as error:
        if not str(error).strip() or len(str(error)) > 20_000:
            raise AssertionError(f"not one clear message: {str(error)[:200]!r}") from None
        return "refused"
    return "understood"


def fuzz(kind: str, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Try ``count`` mutants. Returns how many were understood, refused or crashed, and what those that crashed were."""
    outcomes: Counter[str] = Counter()
    crashes = []
    before = paths.CONFIG, paths.SCENARIOS
    texts = list(mutants(kind, count, seed))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths.CONFIG, paths.SCENARIOS = folder, folder / "scenarios"
        shutil.copytree(before[0], folder, dirs_exist_ok=True)
        for figure in ("tang/fig2.yaml", "sarpkaya2025/fig2c.yaml"):  # two tell as much as all, in less time
            (folder / "scenarios" / figure).parent.mkdir(parents=True)
            shutil.copy(before[1] / figure, folder / "scenarios" / figure)
        try:
            for text in texts:
                try:
                    outcomes[attempt(USES[kind], folder / f"{kind}.yaml", text)] += 1
                except Exception:
                    outcomes["crashed"] += 1
                    crashes.append(f"a mutant of {kind}:\n{text}\n{traceback.format_exc(limit=-6)}")
        finally:
            paths.CONFIG, paths.SCENARIOS = before
    return outcomes, crashes


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=USES)
    parser.add_argument("count", type=int, nargs="?", default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    outcomes, crashes = fuzz(options.kind, options.count, options.seed)
    for text in crashes[:20]:
        print(text[-2500:])
    print(f"{options.count} mutants: " + ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items())))
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
