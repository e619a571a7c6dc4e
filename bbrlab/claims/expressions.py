"""Arithmetic on named columns, as claims write it: ``v1.share_of_capacity - v3.share_of_capacity``.

Numbers, + - * / **, comparison-free; names, ``term.column`` and the functions below. Nothing else of Python exists here,
so an expression can do nothing but compute.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bbrlab.base.errors import UserError
from bbrlab.claims import series
from bbrlab.results.statistics import rms

Value = Any  # a float, or an array of shape (points,)
MAX_EXPONENT = 16
MAX_CHARACTERS = 500
MAX_ARGUMENTS = 20


@dataclass(frozen=True)
class Function:
    """A function of expressions."""

    compute: Callable[..., Value]
    arguments: tuple[str, ...]  # their names, for messages; the last is repeatable if it ends in "..."
    each: bool = False  # whether it gives a value for each point; else it makes one number of its arguments
    together: int = 0  # how many of the first arguments must have a value for each of the same points; -1: all of them
    numbers: tuple[str, ...] = ()  # names of the arguments that are one number each, never a series
    # Whether it is meant of the seeds' means and not of each seed, since the mean of a largest value is more than the largest
    # mean, and that of a root mean square holds the scatter of the seeds
    of_means: bool = False

    @property
    def arity(self) -> tuple[int, int]:
        """Least and largest number of arguments."""
        return len(self.arguments), MAX_ARGUMENTS if self.arguments[-1].endswith("...") else len(self.arguments)


def _all(values: tuple[Value, ...]) -> Value:
    return np.concatenate([np.atleast_1d(v) for v in values])


FUNCTIONS: dict[str, Function] = {
    "abs": Function(np.abs, ("x",), each=True, of_means=True),
    "crossing": Function(series.crossing, ("x", "y", "fraction"), together=2, numbers=("fraction",), of_means=True),
    "first": Function(lambda x: np.atleast_1d(x)[0], ("x",)),
    "fraction_above": Function(series.fraction_above, ("values", "limit"), numbers=("limit",)),
    "grouped_rms": Function(series.grouped_rms, ("values", "key"), together=2, of_means=True),
    "last": Function(lambda x: np.atleast_1d(x)[-1], ("x",)),
    "max": Function(lambda *x: np.max(_all(x)), ("x...",), of_means=True),
    "mean": Function(np.mean, ("x",)),
    "median": Function(np.median, ("x",), of_means=True),
    "min": Function(lambda *x: np.min(_all(x)), ("x...",), of_means=True),
    "rms": Function(lambda x: rms(np.atleast_1d(x)), ("x",), of_means=True),
    "sum": Function(np.sum, ("x",)),
    "tree_accuracy": Function(series.tree_accuracy, ("first", "second", "features..."), together=-1),
    "trend": Function(series.trend, ("values", "key"), together=2),
}
COUNTS = "fraction_above"
BINARY: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.float_power,
}


def parse(text: str) -> ast.expr:
    """The tree of an expression. UserError, with the text, if it is not one."""
    if len(text) > MAX_CHARACTERS:
        raise UserError(f"'{text[:60]}...': an expression has at most {MAX_CHARACTERS} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise UserError(
            f"'{text}' is not an expression (numbers, columns, + - * / **, {', '.join(FUNCTIONS)})"
        ) from None
    _check(tree, text)
    return tree


def _check(node: ast.expr, text: str) -> None:
    """UserError for what is not arithmetic, and for a function that is unknown or has a wrong number of arguments."""
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        _check(node.left, text)
        _check(node.right, text)
        if isinstance(node.op, ast.Pow) and not _small_number(node.right):
            raise UserError(f"'{text}': an exponent must be a number of at most {MAX_EXPONENT}")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check(node.operand, text)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        name = node.func.id
        if name not in FUNCTIONS:
            raise UserError(f"'{text}': there is no function {name} (there are {', '.join(FUNCTIONS)})")
        least, largest = FUNCTIONS[name].arity
        if not least <= len(node.args) <= largest:
            wanted = ", ".join(FUNCTIONS[name].arguments)
            raise UserError(
                f"'{text}': '{ast.unparse(node)}' has {len(node.args)} arguments; it needs {name}({wanted})"
            )
        for argument in node.args:
            _check(argument, text)
    elif isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        pass
    elif not (isinstance(node, ast.Constant) and _finite(node.value)):
        raise UserError(f"'{text}': '{ast.unparse(node)}' is not allowed in an expression")


def _finite(value: object) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return False


def _small_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and _finite(node.value) and abs(float(node.value)) <= MAX_EXPONENT  # type: ignore[arg-type]


def _children(node: ast.expr) -> list[ast.expr]:
    return node.args if isinstance(node, ast.Call) else [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]  # fmt: skip


def names(tree: ast.expr) -> set[str]:
    """The columns that an expression reads, ``column`` or ``term.column``."""
    if isinstance(tree, ast.Name | ast.Attribute):
        return {ast.unparse(tree)}
    return set().union(*(names(child) for child in _children(tree)))


def of_means(tree: ast.expr) -> bool:
    """Whether an expression is meant of the seeds' means: it has such a function (Function.of_means), or a power, of a column."""
    if not names(tree):
        return False
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and FUNCTIONS[tree.func.id].of_means:
        return True
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow):
        return True
    return any(of_means(child) for child in _children(tree))


def points_of(tree: ast.expr, lengths: Mapping[str, int]) -> int | None:
    """For how many points an expression has a value each; None if it is one number.

    UserError for series of different lengths where they must go together, a number where a series is needed, or a series where a
    number is.

    Args:
        lengths: how many points each column has that has a value for each; others are single numbers.
    """
    if isinstance(tree, ast.Name | ast.Attribute):
        return lengths.get(ast.unparse(tree))
    inner = [points_of(child, lengths) for child in _children(tree)]
    if isinstance(tree, ast.Call):
        assert isinstance(tree.func, ast.Name)
        function = FUNCTIONS[tree.func.id]
        together = inner if function.together < 0 else inner[: function.together]
        if together and (None in together or len(set(together)) > 1):
            raise UserError(f"'{ast.unparse(tree)}': {tree.func.id} needs series over the same points")
        for name, count in zip(function.arguments, inner, strict=False):  # the last may stand for several
            if name in function.numbers and count is not None:
                raise UserError(
                    f"'{ast.unparse(tree)}': {name} of {tree.func.id} must be one number (found: a series of {count} points)"
                )
        return inner[0] if function.each else None
    several = {n for n in inner if n is not None}
    if len(several) > 1:
        counts = " and ".join(map(str, sorted(several)))
        raise UserError(f"'{ast.unparse(tree)}': series of {counts} points cannot be put together")
    return several.pop() if several else None


def series_in(tree: ast.expr, several: Container[str]) -> set[str]:
    """The columns with whose points an expression has a value each, after its functions made numbers of others.

    Args:
        several: the columns that have a value for each point.
    """
    if isinstance(tree, ast.Name | ast.Attribute):
        return {ast.unparse(tree)} if ast.unparse(tree) in several else set()
    children = _children(tree)
    if isinstance(tree, ast.Call):
        assert isinstance(tree.func, ast.Name)
        children = children[:1] if FUNCTIONS[tree.func.id].each else []
    return set().union(*(series_in(child, several) for child in children))


def counts_points(tree: ast.expr) -> bool:
    """Whether an expression counts the points that are above a limit, once: those that lack a number can be put on either side."""
    nodes = [n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return nodes.count(COUNTS) == 1


def evaluate(tree: ast.expr, columns: Mapping[str, Value], aside: float | None = None) -> Value:
    """The value of a parsed expression: what cannot be computed (0 / 0) is NaN or infinite.

    Args:
        columns: value of each name that names() gives.
        aside: how far from its limit COUNTS puts values that are NaN, above or (negative) below; default: it has none then either.

    Returns:
        A float, or an array of the columns' shape.
    """
    with np.errstate(all="ignore"):
        return _evaluate(tree, columns, aside)


def _evaluate(tree: ast.expr, columns: Mapping[str, Value], aside: float | None) -> Value:
    match tree:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name() | ast.Attribute():
            return columns[ast.unparse(tree)]
        case ast.UnaryOp(operand=operand):
            return -_evaluate(operand, columns, aside)
        case ast.BinOp(left=left, op=op, right=right):
            return BINARY[type(op)](_evaluate(left, columns, aside), _evaluate(right, columns, aside))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            values = [_evaluate(a, columns, aside) for a in arguments]
            if name == COUNTS and aside is not None:
                values[0] = np.where(np.isnan(values[0]), values[1] + aside, values[0])
            return FUNCTIONS[name].compute(*values)
    raise AssertionError(ast.dump(tree))  # parse() lets nothing else pass
