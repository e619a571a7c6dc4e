"""Arithmetic on named columns, as claims write it: ``v1.share_of_capacity - v3.share_of_capacity``.

Numbers, + - * / **, comparison-free; names, ``term.column`` and the functions below. Nothing else of Python exists here,
so an expression can do nothing but compute.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import stats

from bbrlab.base.errors import UserError

Value = Any  # a float, or an array of shape (points,)
MAX_EXPONENT = 16


def trend(values: Value) -> float:
    """Kendall's rank correlation of values with their place: 1 only rising, -1 only falling; 0 if all are equal."""
    values = np.atleast_1d(values)
    found = stats.kendalltau(np.arange(len(values)), values).statistic
    return 0.0 if np.isnan(found) else float(found)


def _power(base: Value, exponent: Value) -> Value:
    if np.max(np.abs(exponent)) > MAX_EXPONENT:
        raise UserError(f"exponent {exponent}: at most {MAX_EXPONENT}")
    return base**exponent


def crossing(x: Value, y: Value, fraction: Value) -> float:
    """The x at which y, in the order of x, first falls below ``fraction`` of its first value; NaN if it never does.

    Linear between points.
    """
    order = np.argsort(x)
    x, y = np.asarray(x)[order], np.asarray(y)[order]
    limit = float(fraction) * y[0]
    below = np.flatnonzero(y < limit)
    if not len(below) or below[0] == 0:
        return float("nan")
    i = int(below[0])
    return float(x[i - 1] + (x[i] - x[i - 1]) * (y[i - 1] - limit) / (y[i - 1] - y[i]))


def tree_accuracy(first: Value, second: Value, *features: Value) -> float:
    """How well a decision tree tells from ``features`` whether ``first`` exceeds ``second``: decision_tree.accuracy()."""
    from bbrlab.claims import decision_tree

    return decision_tree.accuracy(np.column_stack(features), np.asarray(first) > np.asarray(second))


ELEMENTWISE = {"abs"}  # every other function makes one number of its arguments
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "abs": np.abs,
    "crossing": crossing,
    "first": lambda x: np.atleast_1d(x)[0],
    "last": lambda x: np.atleast_1d(x)[-1],
    "max": lambda *x: np.max(np.concatenate([np.atleast_1d(v) for v in x])),
    "mean": np.mean,
    "median": np.median,
    "min": lambda *x: np.min(np.concatenate([np.atleast_1d(v) for v in x])),
    "rms": lambda x: np.sqrt(np.mean(np.square(x))),
    "sum": np.sum,
    "tree_accuracy": tree_accuracy,
    "trend": trend,
}
BINARY: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.divide,
    ast.Pow: _power,
}


def parse(text: str) -> ast.expr:
    """The tree of an expression. UserError, with the text, if it is not one."""
    try:
        tree = ast.parse(str(text), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise UserError(
            f"'{text}' is not an expression (numbers, columns, + - * / **, {', '.join(FUNCTIONS)})"
        ) from None
    _check(tree, text)
    return tree


def _check(node: ast.expr, text: str) -> None:
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        _check(node.left, text)
        _check(node.right, text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check(node.operand, text)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise UserError(f"'{text}': there is no function {node.func.id} (there are {', '.join(FUNCTIONS)})")
        for argument in node.args:
            _check(argument, text)
    elif isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        pass
    elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
        raise UserError(f"'{text}': '{ast.unparse(node)}' is not allowed in an expression")


def names(tree: ast.expr) -> set[str]:
    """The columns that an expression reads, ``column`` or ``term.column``."""
    if isinstance(tree, ast.Name):
        return {tree.id}
    if isinstance(tree, ast.Attribute):
        return {ast.unparse(tree)}
    children = (
        tree.args if isinstance(tree, ast.Call) else [n for n in ast.iter_child_nodes(tree) if isinstance(n, ast.expr)]
    )
    return set().union(*(names(child) for child in children)) if children else set()


def is_scalar(tree: ast.expr, series: set[str]) -> bool:
    """Whether the expression is one number, where the names in ``series`` have a value for each point."""
    if isinstance(tree, ast.Call):
        assert isinstance(tree.func, ast.Name)
        if tree.func.id not in ELEMENTWISE:
            return True
    children = (
        tree.args if isinstance(tree, ast.Call) else [n for n in ast.iter_child_nodes(tree) if isinstance(n, ast.expr)]
    )
    if isinstance(tree, ast.Name | ast.Attribute):
        return ast.unparse(tree) not in series
    return all(is_scalar(child, series) for child in children)


def evaluate(tree: ast.expr, columns: Mapping[str, Value]) -> Value:
    """The value of a parsed expression.

    Args:
        tree: from parse().
        columns: value of each name that names() gives.

    Returns:
        A float, or an array of the columns' shape.
    """
    match tree:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name() | ast.Attribute():
            return columns[ast.unparse(tree)]
        case ast.UnaryOp(operand=operand):
            return -evaluate(operand, columns)
        case ast.BinOp(left=left, op=op, right=right):
            with np.errstate(divide="ignore", invalid="ignore"):
                return BINARY[type(op)](evaluate(left, columns), evaluate(right, columns))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(evaluate(a, columns) for a in arguments))
    raise AssertionError(ast.dump(tree))  # parse() lets nothing else pass
