"""YAML files, each key once, and the line of each field for messages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from bbrlab.base.errors import UserError


def read_yaml(path: Path) -> Any:
    """The content of a YAML file. UserError with line and column if it is not YAML or cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        try:
            return yaml.load(text, Loader=_FastUniqueLoader)
        except yaml.YAMLError:  # the other parser says more exactly where
            return yaml.load(text, Loader=_UniqueLoader)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give the path of a scenario file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a UTF-8 text file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UserError(f"{path}{where}: not valid YAML: {getattr(error, 'problem', error)}") from None


SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where PyYAML was built with it


class _Unique:
    """YAML allows a key twice and keeps the last; a scenario file must not."""

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
