"""Replaces an algorithm by another, or by one of its profiles, in a whole campaign.

``snakemake --config replace=bbr3:mine -- PAPER``, or ``replace=bbr3:bbr3,profile=v3-drafts`` for the same algorithm with other
parameters.

The replacement is in the environment of the process and of all that it starts, so that every stage has the same figures. Their
results go to a folder of its own (paths.results_folder()).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import yaml

from bbrlab.base import paths
from bbrlab.base.algorithms import KNOWN, own_folder, own_sources
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import parse_yaml
from bbrlab.results.config import name_in_checkout
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import GRID, PLAIN_WORD, Scenario


@dataclass(frozen=True)
class Replacement:
    """A replacement: in every flow group with ``old``, ``new`` runs."""

    # old, new: names of algorithms; the same name twice: ``old`` with other parameters
    old: str
    new: str
    # Of ``new``, as a scenario writes them. If ``new`` is ``old``, a scenario's other parameters stay
    params: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """As parse_replacement() reads it."""
        return ",".join([f"{self.old}:{self.new}", *self._settings])

    @property
    def stand_in(self) -> str:
        """The new algorithm with its parameters, in words."""
        return f"{self.new}{' with ' if self.params else ''}{', '.join(self._settings)}"

    @property
    def _settings(self) -> list[str]:
        return [f"{name}={value}" for name, value in self.params.items()]

    @property
    def words(self) -> str:
        """The replacement in words."""
        return f"{self.stand_in} replaces {self.old}"

    @property
    def note(self) -> str:
        """A note for a page on what the replacement means for its content (Markdown)."""
        kept = (
            f"Other parameters that a scenario gives {self.old} stay."
            if self.new == self.old
            else f"Parameters that a scenario gives {self.old} are left out."
        )
        return (
            f"> **{self.words}** in every run of this page. Published values, statements on "
            f"{self.old}, and the names of cases and swept values are the paper's: a verdict is on what {self.stand_in} does "
            f"in place of {self.old}. {kept} Findings are on {self.old}. The models describe the original algorithms: claims that "
            "compare with a model have no number where it does not describe the new one."
        )

    def concerns(self, point: Point) -> bool:
        """Whether it changes a point."""
        return any(flow.cca == self.old for flow in point.scenario.flows)

    def of_point(self, point: Point) -> Point:
        """The point with the new algorithm. Its swept values keep their words, by which claims select it."""
        if not self.concerns(point):
            return point
        return Point(self._put(point.scenario, set(GRID), point.label), point.values)

    def of_scenario(self, scenario: Scenario) -> Scenario:
        """The scenario with the new algorithm; its cases and sweep stay."""
        return self._put(scenario, set(), scenario.name)

    def _put(self, scenario: Scenario, without: set[str], where: str) -> Scenario:
        content = scenario.model_dump(exclude=without, exclude_unset=True)
        for flow in content["flows"]:
            if flow["cca"] == self.old:
                kept = flow.pop("params", {}) if self.new == self.old else {}
                flow.pop("params", None)
                flow["cca"] = self.new
                if kept or self.params:
                    flow["params"] = {**kept, **{name: _value(word) for name, word in self.params.items()}}
        return validate(content, f"replace={self.text}: {where}", None, scenario.folder, scenario.sources)


def _is_a_value(word: str) -> bool:
    try:
        _value(word)
    except yaml.YAMLError:
        return False
    return True


def _value(word: str) -> str | int | float | bool:
    """The value of a word in a scenario's YAML. YAMLError if it is invalid."""
    meant = parse_yaml(word)
    return meant if isinstance(meant, str | int | float | bool) else word


def parse_replacement(text: str) -> Replacement:
    """Parse OLD:NEW or OLD:NEW,PARAMETER=VALUE,... UserError for anything else, and for unknown algorithms."""
    old, colon, stand_in = text.partition(":")
    new, *given = stand_in.split(",")
    setting = f"replace={text}"
    if not (colon and old and new) or ":" in new:
        raise UserError(
            f"{setting}: give OLD:NEW, what is replaced and what stands in its place, for example replace=bbr3:mine, or "
            "replace=bbr3:bbr3,profile=v3-drafts"
        )
    params: dict[str, str] = {}
    for item in given:
        name, _, value = item.partition("=")
        if not (name.isidentifier() and PLAIN_WORD.fullmatch(value) and _is_a_value(value)) or name in params:
            raise UserError(f"{setting}: '{item}': give PARAMETER=VALUE once for each, for example profile=v3-drafts")
        params[name] = value
    if old == new and not params:
        raise UserError(
            f"{setting}: puts {old} in its own place; with a parameter it may, for example {old}:{old},NAME=VALUE"
        )
    names = {**dict.fromkeys(KNOWN), **own_sources()}
    for name in (old, new):
        if name not in names:
            raise UserError(
                f"{setting}: there is no algorithm '{name}' (there are {', '.join(names)}; one of your own is a file "
                f"{name_in_checkout(own_folder())}/NAME.c)"
            )
    return Replacement(old, new, params)


def begin_replacement(text: object) -> Replacement:
    """Have this process, and all that it starts, replace an algorithm. UserError as in parse_replacement()."""
    swap = parse_replacement("" if text is None else str(text))
    os.environ[paths.REPLACE] = swap.text
    return swap


def replacement() -> Replacement | None:
    """This process's replacement, if it has one."""
    text = os.environ.get(paths.REPLACE)
    return parse_replacement(text) if text else None


UNCHANGED = Replacement("", "")  # replaces nothing


def check_replaced(points: Iterable[Point]) -> None:
    """UserError if this process has a replacement, and no point has the old algorithm.

    Args:
        points: as scenarios have them (UNCHANGED), before the replacement.
    """
    swap = replacement()
    if swap and not any(swap.concerns(point) for point in points):
        raise UserError(f"replace={swap.text}: no figure of this campaign has {swap.old}")
