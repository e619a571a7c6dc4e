"""YAML files: plain data, each key once, no aliases; and the line of each field for messages.

The loaders are the safe ones: a file's tags construct numbers, texts, lists and mappings, never objects of a program.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from bbrlab.base.errors import UserError


def read_yaml(path: Path, hint: str = "") -> Any:
    """The content of a YAML file. UserError with line and column if it is not YAML, and with ``hint`` if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        try:
            content = yaml.load(text, Loader=_FastUniqueLoader)
            if not _shares(content, set()):
                return content
        except yaml.YAMLError:
            pass
        return yaml.load(text, Loader=_UniqueLoader)  # which says more exactly where, and takes no aliases
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}){hint and f'; {hint}'}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a UTF-8 text file") from None
    except RecursionError:
        raise UserError(f"{path}: is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UserError(f"{path}{where}: not valid YAML: {getattr(error, 'problem', error)}") from None


def _shares(content: Any, met: set[int]) -> bool:
    """Whether a list or mapping stands in ``content`` more than once, as aliases make it."""
    if not isinstance(content, (dict, list)):
        return False
    if id(content) in met:
        return True
    met.add(id(content))
    return any(_shares(value, met) for value in (content.values() if isinstance(content, dict) else content))


SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where PyYAML was built with it


class _Unique:
    """YAML allows a key twice and keeps the last, and parts that stand for others, even for themselves; we do not."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        loader: Any = self
        if loader.check_event(yaml.AliasEvent):
            event = loader.peek_event()
            problem = f"an alias (*{event.anchor}) is not possible here; write the value out"
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)  # type: ignore[misc]
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)  # type: ignore[misc]
        except (ValueError, LookupError, AttributeError):  # 2020-13-01 looks like a date, and is none
            problem = f"'{str(node.value)[:60]}' is no valid {node.tag.rsplit(':', 1)[-1]}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        loader: Any = self
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
        for position, (key_node, _) in enumerate(node.value):
            if keys[position] in keys[:position]:
                problem = f"key '{keys[position]}' stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)  # type: ignore[misc]
        return mapping


class _UniqueLoader(_Unique, yaml.SafeLoader):
    pass


class _FastUniqueLoader(_Unique, SafeLoader):  # type: ignore[misc]
    pass


class Lines:
    """The line of each field of a YAML file, for messages."""

    def __init__(self, path: Path):
        self.root = yaml.compose(path.read_text(encoding="utf-8"), Loader=SafeLoader)

    def of(self, parts: Iterable[Any]) -> int:
        """The line of the field at ``parts``, or of the innermost one around it that is there."""
        node, line = self.root, 1
        for part in parts:
            if isinstance(node, yaml.MappingNode):
                found = next(((k, v) for k, v in node.value if k.value == str(part)), None)
                if found is None:
                    break
                line, node = found[0].start_mark.line + 1, found[1]
            elif isinstance(node, yaml.SequenceNode) and str(part).isdigit() and int(part) < len(node.value):
                node = node.value[int(part)]
                line = node.start_mark.line + 1
            else:
                break
        return int(line)
