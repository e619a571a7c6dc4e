"""Targets of the workflow: papers and figures by name; keys after ``--config``."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign.plan import Plan, PlannedFigure


def targets_of(chosen: Iterable[str]) -> dict[str, list[str]]:
    """What one may ask the workflow for: {paper, PAPER/FIGURE, or figure's name: figures}, a name of several papers' figures for all."""
    targets: dict[str, list[str]] = {}
    for id in chosen:
        for name in (*id.split("/"), id):
            targets.setdefault(name, []).append(id)
    return targets


def chosen_figures(chosen: Iterable[str], names: Iterable[str]) -> list[str]:
    """The figures that the words of a command line ask for; all if none does.

    A word is a name of targets_of(), a file of a figure's or a paper's results (results/full/tang/fig2.csv), or one of a run
    (results/runs/tang/fig2/POINT/seed-1/summary.json).
    """
    targets = targets_of(chosen)
    wanted: dict[str, None] = {}
    for name in names:
        wanted |= dict.fromkeys(next((targets[w] for w in _names_in(name) if w in targets), []))
    return list(wanted or chosen)


def _names_in(word: str) -> list[str]:
    """What a word of a command line may name."""
    path = Path(word)
    if not path.suffix:
        return [word]
    match path.parts[-6:]:
        case ("runs", paper, figure, _, _, _):
            return [f"{paper}/{figure}"]
    stem = path.name.split(".")[0]
    return [f"{path.parent.name}/{stem}", stem]


def checked_targets(words: Collection[str], plan: Plan, rules: Collection[str]) -> list[PlannedFigure]:
    """The figures that a command line asks for. UserError for a name that is none, or a figure whose algorithms the kernel lacks.

    Args:
        rules: names of Snakemake's rules that can be asked for; figures' and papers' may be among them.
    """
    check_target_names(words, plan.figures, rules, plan.scale)
    chosen = [plan.figures[id] for id in chosen_figures(plan.figures, words)]
    if any(figure.lacking for figure in chosen):
        from bbrlab.results.figures import check_ccas, figures_at

        check_ccas(figures_at(plan.scale, [figure.id for figure in chosen]), plan.kernel)
    return chosen


def check_target_names(words: Iterable[str], chosen: Collection[str], rules: Collection[str], scale: str) -> None:
    """UserError for a word that is neither a figure, a paper, a rule nor a file: what may have been meant."""
    targets = targets_of(chosen)
    others = [rule for rule in rules if rule not in targets]
    for word in words:
        if word in targets or word in others or _is_file(word):
            continue
        if "/" not in word and (close := difflib.get_close_matches(word, others, 1, 0.8)):
            raise UserError(f"there is no target '{word}', did you mean {close[0]}?")
        from bbrlab.results.figures import figures_at

        figures_at(scale, [word])  # which says what is wrong with a name
        raise UserError(
            f"{word} is not among the figures of this campaign; add it to --config figures=... or leave that out"
        )


def _is_file(word: str) -> bool:
    path = Path(word)
    return (
        "://" in word
        or bool(path.suffix)
        or len(path.parts) > 2
        or path.absolute().is_relative_to(paths.results_folder().absolute())
        or path.is_file()
    )


def check_config_keys(given: Mapping[str, Any]) -> None:
    """UserError for a key of Snakemake's configuration that means nothing here, so that no mistyped one is passed over, or a value
    that it cannot have.

    Args:
        given: config/config.yaml with what ``--config`` and ``--configfile`` add to it.
    """
    from pydantic import ValidationError

    from bbrlab.base.strict import first_problem
    from bbrlab.base.yaml_files import read_yaml
    from bbrlab.results.config import REPLACE, SCALES, Config, check_keys

    check_keys(key for key in given if key != SCALES)
    file = paths.CONFIG / "config.yaml"
    if given.get(SCALES) != read_yaml(file)[SCALES]:
        raise UserError(f"--config {SCALES}: scales are read from {file} only; change them there")
    content = {key: value for key, value in given.items() if key != REPLACE}
    if isinstance(content.get("figures"), str):  # one name without brackets
        content["figures"] = [content["figures"]]
    try:
        Config.model_validate(content)
    except ValidationError as error:
        of_figures = error.errors()[0]["loc"][0] == "figures"
        example = "give names, as in 'figures=[tang]'" if of_figures else "leave it out for the file's own"
        raise UserError(f"--config {first_problem(error)}; {example}") from None
