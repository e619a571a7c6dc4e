"""The functions that compute the schema's metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from bbrlab.measure.metrics import Metric
from bbrlab.measure.numbers import Value

Subject = TypeVar("Subject")


class Registry(Generic[Subject]):
    """The functions that compute the metrics of one kind of subject.

    A function for one metric returns its value, one for several a dictionary of them.
    """

    def __init__(self, scope: Mapping[str, Metric]):
        self.scope = scope
        self.functions: dict[tuple[str, ...], Callable[[Any], Any]] = {}

    def of(self, *names: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
        """Decorator: the function computes these metrics. KeyError for one that is not in the schema or computed twice."""
        for name in names:
            if name not in self.scope or name in self.names:
                raise KeyError(f"metric {name}: not in bbrlab/measure/metrics.py, or computed by two functions")

        def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            self.functions[names] = function
            return function

        return register

    @property
    def names(self) -> set[str]:
        """Every metric that a function computes."""
        return {name for names in self.functions for name in names}

    def values(self, subject: Subject) -> dict[str, Value]:
        """Every metric of the scope, in its order; None if this subject has no such value, or left out (Metric.sometimes)."""
        by_name: dict[str, Value] = {}
        for names, function in self.functions.items():
            result = function(subject)
            by_name |= {name: result[name] for name in names} if len(names) > 1 else {names[0]: result}
        left_out = {name for name, metric in self.scope.items() if metric.sometimes and by_name.get(name) is None}
        return {name: by_name.get(name) for name in self.scope if name not in left_out}
