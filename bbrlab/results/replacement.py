"""One algorithm, or one of its profiles, in the place of another through a whole campaign.

``snakemake --config replace=bbr3:mine -- PAPER``, or ``replace=bbr3:bbr3,profile=v3-drafts`` for the same algorithm with other
parameters.

The process that is asked for it, and all that it starts, have it in their environment, so that every stage speaks of the same
figures. What they write goes to a folder of its own (paths.results_folder()).
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
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import GRID, PLAIN_WORD, Scenario


@dataclass(frozen=True)
class Replacement:
    """An algorithm in the place of another: in every flow group that has ``old``, ``new`` runs.

    Attributes:
        old, new: names of algorithms; the same name twice: ``old`` with other parameters.
        params: what ``new`` gets, in the words of a scenario. Another algorithm gets nothing else, the same one keeps what a scenario gives it besides.
    """

    old: str
    new: str
    params: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """As parse_replacement() reads it."""
        return ",".join([f"{self.old}:{self.new}", *self._settings])

    @property
    def stand_in(self) -> str:
        """What stands there, with its parameters, in words."""
        return f"{self.new}{' with ' if self.params else ''}{', '.join(self._settings)}"

    @property
    def _settings(self) -> list[str]:
        return [f"{name}={value}" for name, value in self.params.items()]

    @property
    def words(self) -> str:
        """What stands in whose place."""
        return f"{self.stand_in} stands in the place of {self.old}"

    @property
    def note(self) -> str:
        """The same for a page, with what it means for what else stands there (Markdown)."""
        kept = (
            f"Other parameters that a scenario gives {self.old} stay."
            if self.new == self.old
            else f"Parameters that a scenario gives {self.old} are left out."
        )
        return (
            f"> **{self.words}** in every run of this page. Published values, what is said of "
            f"{self.old}, and the names of cases and swept values are the paper's: a verdict says what {self.stand_in} does "
            f"where the paper speaks of {self.old}. {kept} Findings are of {self.old}. The models speak of the algorithms as they "
            "are: where they know nothing of what stands here, their claims have no number."
        )

    def concerns(self, point: Point) -> bool:
        """Whether a point changes."""
        return any(flow.cca == self.old for flow in point.scenario.flows)

    def of_point(self, point: Point) -> Point:
        """The point with the other algorithm. Its swept values keep their words, which claims choose it by."""
        if not self.concerns(point):
            return point
        return Point(self._put(point.scenario, set(GRID), point.label), point.values)

    def of_scenario(self, scenario: Scenario) -> Scenario:
        """The scenario's own values with the other algorithm; its cases and sweep stay."""
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
    """What a scenario's YAML means by a word. YAMLError for what it cannot read."""
    meant = parse_yaml(word)
    return meant if isinstance(meant, str | int | float | bool) else word


def parse_replacement(text: str) -> Replacement:
    """OLD:NEW, or OLD:NEW,PARAMETER=VALUE,... UserError for anything else, and for names that there are not."""
    old, colon, stand_in = text.partition(":")
    new, *given = stand_in.split(",")
    where = f"replace={text}"
    if not (colon and old and new) or ":" in new:
        raise UserError(
            f"{where}: give OLD:NEW, what is replaced and what stands in its place, for example replace=bbr3:mine, or "
            "replace=bbr3:bbr3,profile=v3-drafts"
        )
    params: dict[str, str] = {}
    for item in given:
        name, _, value = item.partition("=")
        if not (name.isidentifier() and PLAIN_WORD.fullmatch(value) and _is_a_value(value)) or name in params:
            raise UserError(f"{where}: '{item}': give PARAMETER=VALUE once for each, for example profile=v3-drafts")
        params[name] = value
    if old == new and not params:
        raise UserError(
            f"{where}: puts {old} in its own place; with a parameter it may, for example {old}:{old},NAME=VALUE"
        )
    known = {**dict.fromkeys(KNOWN), **own_sources()}
    for name in (old, new):
        if name not in known:
            raise UserError(
                f"{where}: there is no algorithm '{name}' (there are {', '.join(known)}; one of your own is a file "
                f"{own_folder().relative_to(paths.ROOT) if own_folder().is_relative_to(paths.ROOT) else own_folder()}/NAME.c)"
            )
    return Replacement(old, new, params)


def begin_replacement(text: object) -> Replacement:
    """Have this process, and all that it starts, replace an algorithm. UserError as of parse_replacement()."""
    found = parse_replacement("" if text is None else str(text))
    os.environ[paths.REPLACE] = found.text
    return found


def replacement() -> Replacement | None:
    """What this process replaces; None: nothing."""
    text = os.environ.get(paths.REPLACE)
    return parse_replacement(text) if text else None


UNCHANGED = Replacement("", "")  # replaces nothing


def check_replaced(points: Iterable[Point]) -> None:
    """UserError if something is to be replaced and no point has it.

    Args:
        points: as scenarios have them (UNCHANGED), without what stands in its place.
    """
    swap = replacement()
    if swap and not any(swap.concerns(point) for point in points):
        raise UserError(f"replace={swap.text}: no figure of this campaign has {swap.old}")
