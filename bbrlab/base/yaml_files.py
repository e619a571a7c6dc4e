"""YAML files: plain data, each key once, no aliases, no tags; and the line of each field for messages.

libyaml's parser alone decides what is YAML; this module builds texts, numbers, lists and mappings of its events, never objects
of a program. Numbers are decimal: what YAML 1.1 reads as octal, hexadecimal or sexagesimal is refused, so that 020 is neither
16 nor 20 and 1:30 is not 90. A date is a text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bbrlab.base.errors import UserError
from bbrlab.base.files import read_plain

SafeLoader: Any = yaml.CSafeLoader
DEPTH_MAX = 50  # lists and mappings in each other; what the package's own files have is below 10
DIGITS_MAX = 1000  # of a number; the largest float has 309

WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*|(?=\.[0-9]))(\.[0-9]*)?([eE][-+]?[0-9]+)?")
# What some reader of YAML takes for another number than people do: with what to write in its place.
OTHER_NUMBERS = (
    (re.compile(r"[-+]?0[0-9_]*[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?"), "a number has no leading 0"),
    (re.compile(r"[-+]?0[xob][0-9a-fA-F_]+"), "a number is decimal"),
    (re.compile(r"[-+]?[0-9][0-9_]*(:[0-9]+)+(\.[0-9_]*)?"), "a number has no colon; a time is in seconds"),
    (re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?"), "a number has no _ in it"),
    (re.compile(r"[-+]?[0-9]*\.[0-9]*_[0-9_]*([eE][-+]?[0-9]+)?"), "a number has no _ in it"),
    (re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"), "a number is finite"),
)
WORDS: dict[str, bool | None] = {
    spelt: value
    for value, words in ((True, ("true", "yes", "on")), (False, ("false", "no", "off")), (None, ("null",)))
    for word in words
    for spelt in (word, word.capitalize(), word.upper())
} | {"": None, "~": None}


# What to do about what libyaml says of a file that is not YAML.
REMEDIES = {
    "mapping values are not allowed in this context": "a text with a colon stands in quotes, and keys of one part begin in one column",
    "could not find expected ':'": "a key has a colon and a space after it",
    "did not find expected key": "keys of one part begin in one column, and what opens with a quote or bracket is closed",
    "did not find expected ',' or ']'": "what opens with [ is closed with ], with commas in between",
    "did not find expected ',' or '}'": "what opens with { is closed with }, with commas in between",
    "found character that cannot start any token": "a text that begins with a sign stands in quotes",
}


class NotPlainError(yaml.MarkedYAMLError):
    """YAML that is more than plain data, or a number that two readers take for two."""


class Node(NamedTuple):
    """A part of a file: where it begins, what stands there, and of a list or mapping its parts."""

    line: int
    content: Any
    parts: dict[Any, Node]
    key_lines: dict[Any, int]


def read_yaml(path: Path, hint: str = "") -> Any:
    """The content of a YAML file. UserError with line and column if it is not YAML, and with ``hint`` if it cannot be read or is empty."""
    return _read(path, hint).content


def read_texts(path: Path) -> Any:
    """The content of a YAML file with each word and number as it was typed, keys, too: 0123 and yes are texts. UserError as read_yaml()."""
    return _read(path, as_typed=True).content


def parse_yaml(text: str) -> Any:
    """The content of a text that is YAML, by the same rules as a file's. NotPlainError if it is more than plain data; ``problem``
    says what. yaml.YAMLError if it is no YAML."""
    try:
        return _parse(text).content
    except UnicodeEncodeError:  # bytes of a command line that are no UTF-8
        raise NotPlainError(problem="is no UTF-8 text") from None


def dump_yaml(content: Any, *, sort_keys: bool = False, allow_unicode: bool = False) -> str:
    """The text of a file that read_yaml() reads as the same content."""
    dumped: str = yaml.dump(content, Dumper=_Dumper, sort_keys=sort_keys, allow_unicode=allow_unicode)
    return dumped


class Lines:
    """The line of each field of a YAML file, for messages. UserError as read_yaml(), or with ``as_typed`` as read_texts()."""

    def __init__(self, path: Path, *, as_typed: bool = False):
        self.root = _read(path, as_typed=as_typed)

    def of(self, parts: Iterable[Any]) -> int:
        """The line of the field at ``parts``, or of the innermost one around it that is there."""
        node, line = self.root, 1
        for part in parts:
            key = next((key for key in node.parts if str(key) == str(part)), None)
            if key is None:
                break
            line, node = node.key_lines[key], node.parts[key]
        return line


class _Dumper(yaml.SafeDumper):
    """Puts in quotes what read_yaml() would not take for a text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML has it
        first: list(pairs) for first, pairs in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }


_Dumper.add_implicit_resolver("!number", DECIMAL, list("-+.0123456789"))
for _pattern, _ in OTHER_NUMBERS:
    _Dumper.add_implicit_resolver("!number", _pattern, list("-+.0123456789"))


def _read(path: Path, hint: str = "", as_typed: bool = False) -> Node:
    text = ""
    try:
        text = read_plain(path).decode()
        root = _parse(text, as_typed)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}){hint and f'; {hint}'}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a UTF-8 text file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        problem = _in_words(str(getattr(error, "problem", None) or error), text, mark)
        raise UserError(f"{path}{where}: not valid YAML: {problem}") from None
    if root.content is None:
        raise UserError(f"{path}: is empty{hint and f'; {hint}'}")
    return root


def _in_words(problem: str, text: str, mark: Any) -> str:
    """A problem of libyaml's with what to do about it."""
    if mark and "\t" in "".join(text.splitlines()[mark.line : mark.line + 1])[: mark.column + 1]:
        return "a tab; indent with spaces"
    return f"{problem}; {REMEDIES[problem]}" if problem in REMEDIES else problem


def _parse(text: str, as_typed: bool = False) -> Node:
    """The only document of a text. YAMLError if it is not YAML, or more than plain data."""
    events: Iterator[Any] = yaml.parse(text, Loader=SafeLoader)
    next(events)  # the stream begins
    start = next(events)
    if isinstance(start, yaml.StreamEndEvent):
        return Node(1, None, {}, {})
    root = _node(next(events), events, 1, as_typed)
    next(events)  # the document ends
    if not isinstance(end := next(events), yaml.StreamEndEvent):
        raise _problem("a second document begins here; a file has one", end)
    return root


def _problem(problem: str, event: Any) -> NotPlainError:
    return NotPlainError(None, None, problem, event.start_mark)


def _node(event: Any, events: Iterator[Any], depth: int, as_typed: bool) -> Node:
    """What begins with ``event``."""
    if isinstance(event, yaml.AliasEvent):
        raise _problem(f"an alias (*{event.anchor}) is not possible here; write the value out", event)
    if getattr(event, "tag", None) is not None:
        raise _problem(f"a tag ({event.tag}) is not possible here; leave it out", event)
    line = event.start_mark.line + 1
    if isinstance(event, yaml.ScalarEvent):
        return Node(line, event.value if as_typed or not event.implicit[0] else _value(event), {}, {})
    if depth > DEPTH_MAX:
        raise _problem(f"is nested too deeply: more than {DEPTH_MAX} lists and mappings in each other", event)
    parts: dict[Any, Node] = {}
    lines: dict[Any, int] = {}
    if isinstance(event, yaml.SequenceStartEvent):
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            part = _node(event, events, depth + 1, as_typed)
            lines[len(parts)] = part.line
            parts[len(parts)] = part
        return Node(line, [part.content for part in parts.values()], parts, lines)
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        if not isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
            raise _problem("a key is a single word or number, not a list or mapping", event)
        key = _node(event, events, depth + 1, as_typed)
        value = next(events)
        assert isinstance(event, yaml.ScalarEvent), "no alias is left by now"
        if not isinstance(key.content, str):
            raise _problem(_no_key(event.value, key.content, value, parts), event)
        if key.content in parts:
            raise _problem(f"key '{key.content}' stands twice", event)
        lines[key.content] = key.line
        parts[key.content] = _node(value, events, depth + 1, as_typed)
    return Node(line, {key: part.content for key, part in parts.items()}, parts, lines)


def _no_key(typed: str, content: Any, value: Any, before: dict[Any, Node]) -> str:
    """What is said of a key that is no text.

    Args:
        value: the event that follows it.
        before: the parts that precede it.
    """
    if not typed:
        return "a key is missing before the colon"
    kind = "nothing" if content is None else f"{content}".lower() if isinstance(content, bool) else "a number"
    last = next(reversed(before.values())).content if before else None
    if kind == "a number" and isinstance(last, int) and getattr(value, "value", typed) == "":
        return f"{last},{typed}: decimals have a point, as {last}.{typed}"
    return f"the key {typed}: YAML reads {typed} as {kind}; write it in quotes: '{typed}'"


def _value(event: Any) -> Any:
    """What a word without quotes is: a truth value, nothing, a number or a text."""
    text = event.value
    if text in WORDS:
        return WORDS[text]
    if DECIMAL.fullmatch(text):
        if len(text) > DIGITS_MAX:
            raise _problem(f"a number of {len(text)} characters is too long", event)
        number = float(text)
        if math.isinf(number) or (not number and re.search("[1-9]", re.split("[eE]", text)[0])):
            raise _problem(f"{text[:40]} is too {'large' if number else 'small'} a number", event)
        whole = WHOLE.fullmatch(text) or ("." not in text and number.is_integer() and abs(number) < 2**53)
        return (int(text) if WHOLE.fullmatch(text) else int(number)) if whole else number
    for pattern, rule in OTHER_NUMBERS:
        if pattern.fullmatch(text):
            raise _problem(f"{text[:40]}: {rule}; a text that looks like a number stands in quotes", event)
    return text
