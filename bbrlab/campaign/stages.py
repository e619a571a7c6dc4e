"""Which code and data decide the results of each stage of a campaign.

The code is every module that a stage's command can import, so that no file can be forgotten and no list of folders grows old.
Snakemake sees one small file for each stage. It changes only if what the code does may have changed: not with a comment, a
docstring, a field's description, or the place where a module stands.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bbrlab.base import paths
from bbrlab.base.errors import UserError

PACKAGES = ("bbrlab", "bbrlab_apps", "studies")  # whose modules are followed
FRAME = "bbrlab.cli.app"  # of the command line; it only passes words on


@dataclass(frozen=True)
class Stage:
    """What decides a stage's results."""

    modules: tuple[str, ...]  # of its commands; what they import, in functions too, is followed
    data: tuple[str, ...]  # folders, files or patterns of them below the checkout
    notebooks: bool = False  # whether what notebooks import belongs to it. Their cells are inputs of the rules


# What is computed here by NumPy, SciPy and numba; of a run they make sums and percentiles only, which no version changes.
_LIBRARIES = "envs/requirements.lock"
_JUDGED = ("data", "scenarios", "config/config.yaml", _LIBRARIES)
STAGES = {
    "kernel": Stage(("bbrlab.cli.kernels",), ("mininet/iperf3_patience.c", "mininet/ovs_clock.c")),
    "runs": Stage(("bbrlab.cli.stages.runs",), ("mininet",)),
    "models": Stage(("bbrlab.cli.stages.models",), ("data/*/models.yaml", _LIBRARIES)),
    "tables": Stage(("bbrlab.cli.stages.tables",), (_LIBRARIES,)),
    "seeds": Stage(("bbrlab.cli.stages.claims",), (_LIBRARIES,)),  # the claims: planning.seed_request_text()
    "claims": Stage(("bbrlab.cli.stages.claims",), _JUDGED),
    "pages": Stage(("bbrlab.cli.stages.pages",), (*_JUDGED, "bbrlab_apps/site/templates"), notebooks=True),
    "site": Stage(("bbrlab_apps.site.commands",), (*_JUDGED, "bbrlab_apps/site/static", "bbrlab_apps/site/templates")),
}
FOR_READERS = {"Field": "description", "Option": "help", "Argument": "help"}  # keywords of a field and of an option
NOTHING = "Module(body=[], type_ignores=[])"  # of a file with a docstring and imports alone
LEFT_OUT = {".md", ".pyc", ".nbi", ".nbc"}  # words about the files, and what Python and numba leave beside them


def stage_hash(stage: str) -> str:
    """SHA-256 of what a stage's code does and of its data. UserError if a module or folder of the stage is not there."""
    hashes = {_with_imports(path, paths.ROOT) for path in modules_of(stage) if _parsed(path).does_something}
    hashes |= {_of_data(path, paths.ROOT) for path in data_of(stage)}
    return _sha256("\n".join(sorted(hashes)))


def modules_of(stage: str, root: Path | None = None) -> set[Path]:
    """The files of all modules that a stage's commands can import. UserError if a command's module is not there."""
    root = root or paths.ROOT
    left = list(STAGES[stage].modules)
    for module in left:
        if _file_of(module, root) is None:
            raise _missing(root / module.replace(".", "/"), stage)
    if STAGES[stage].notebooks:
        left += [name for path in (root / "notebooks").glob("*.ipynb") for name in _imported_by_notebook(path)]
    reached: set[Path] = set()
    seen = {FRAME}
    while left:
        module = left.pop()
        if module in seen:
            continue
        seen.add(module)
        path = _file_of(module, root)
        if path is None or path in reached:
            continue
        reached.add(path)
        left += _parsed(path).modules
        reached |= {path.with_name(name) for name in _parsed(path).scripts if path.with_name(name).is_file()}
    return reached


def data_of(stage: str, root: Path | None = None) -> list[Path]:
    """The files that are no modules and decide a stage's results. UserError if one of the stage's folders is not there."""
    root = root or paths.ROOT
    data: set[Path] = set()
    for name in STAGES[stage].data:
        places = list(root.glob(name))
        if not places:
            raise _missing(root / name, stage)
        for place in places:
            below = place.rglob("*") if place.is_dir() else [place]
            data |= {p for p in below if p.is_file() and p.suffix not in LEFT_OUT}
    return sorted(p for p in data if not any(part.startswith(".") for part in p.relative_to(root).parts))


def _missing(place: Path, stage: str) -> UserError:
    return UserError(f"{place}: is not there, but stage {stage} of a campaign depends on it ({Path(__file__).name})")


@dataclass(frozen=True)
class _Import:
    """A name that a module takes from another one."""

    module: str
    name: str  # what is taken; empty for the module itself
    as_name: str

    @property
    def is_ours(self) -> bool:
        return self.module.partition(".")[0] in PACKAGES


@dataclass(frozen=True)
class _Parsed:
    """What a Python file does."""

    # Of its syntax tree without imports, docstrings and descriptions of fields
    sha256: str
    does_something: bool  # whether more is in it than a docstring and imports
    imports: tuple[_Import, ...]
    scripts: tuple[str, ...]  # names of Python files beside it that it starts: Path(__file__).with_name("start.py")

    @functools.cached_property
    def modules(self) -> list[str]:
        """Modules of ours that it may import; some of the names are no modules."""
        ours = [i for i in self.imports if i.is_ours]
        return [name for i in ours for name in (*_parents(i.module), f"{i.module}.{i.name}")]


def _parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


def _file_of(module: str, root: Path) -> Path | None:
    place = root / module.replace(".", "/")
    return next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()), None)


@functools.cache
def _with_imports(path: Path, root: Path) -> str:
    """SHA-256 of what a module does and of what the names mean that it imports.

    Of a module of ours what counts is what that one does, not where it stands; of others their names.
    """
    parsed = _parsed(path)
    meanings = set()
    for taken in parsed.imports:
        if not taken.is_ours:
            meaning = f"{taken.module}.{taken.name}"
        elif taken.module == FRAME:
            meaning = taken.name
        elif module := _file_of(f"{taken.module}.{taken.name}".rstrip("."), root):
            meaning = _parsed(module).sha256
        else:
            origin = _file_of(taken.module, root)
            meaning = f"{taken.name} of {_parsed(origin).sha256 if origin else None}"
        meanings.add(f"{taken.as_name}: {meaning}")
    return _sha256("\n".join([parsed.sha256, *sorted(meanings)]))


def _of_data(path: Path, root: Path) -> str:
    """SHA-256 of a file and of its name below the checkout, which counts: two tables may have changed places."""
    place = path.relative_to(root)
    content = _parsed(path).sha256 if path.suffix == ".py" else hashlib.sha256(path.read_bytes()).hexdigest()
    return content if place.parts[0] in PACKAGES else _sha256(f"{content}  {place}")


@functools.cache
def _parsed(path: Path) -> _Parsed:
    reading = _Reading()
    text = reading.text_of(ast.parse(path.read_bytes(), str(path)))
    return _Parsed(_sha256(text), text != NOTHING, tuple(reading.imports), tuple(reading.scripts))


def _imported_by_notebook(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    reading = _Reading()
    reading.text_of(ast.parse(code, str(path)))
    return _Parsed("", True, tuple(reading.imports), ()).modules


class _Reading:
    """One pass over a syntax tree: what the code does, as text, what it imports, and the Python files that it starts."""

    def __init__(self) -> None:
        self.imports: list[_Import] = []
        self.scripts: list[str] = []

    def text_of(self, part: Any) -> str:
        """In the form of the standard library's dump of a tree, without imports, docstrings, and the texts for who reads a field or an option."""
        if isinstance(part, list):
            return f"[{', '.join([self.text_of(one) for one in part if not self._is_import(one)])}]"
        if not isinstance(part, ast.AST):
            return repr(part)
        self._note_script(part)
        fields = []
        for name in part._fields:
            value = getattr(part, name)
            if value is None and getattr(type(part), name, ...) is None:  # it may be left out, and is
                continue
            if name == "body" and _has_docstring(part):
                value = value[1:]
            elif name == "keywords" and isinstance(part, ast.Call):
                value = _without_words(part)
            fields.append(f"{name}={self.text_of(value)}")
        return f"{type(part).__name__}({', '.join(fields)})"

    def _is_import(self, part: Any) -> bool:
        """Whether it imports, for types or for all; then what is noted."""
        for_types = isinstance(part, ast.If) and isinstance(part.test, ast.Name) and part.test.id == "TYPE_CHECKING"
        if not for_types and not isinstance(part, (ast.Import, ast.ImportFrom)):
            return False
        for node in ast.walk(part):
            if isinstance(node, ast.Import):
                self.imports += [_Import(alias.name, "", alias.asname or alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                self.imports += [_Import(module, alias.name, alias.asname or alias.name) for alias in node.names]
        return True

    def _note_script(self, part: ast.AST) -> None:
        match part:
            case ast.Call(func=ast.Attribute(attr="with_name"), args=[ast.Constant(value=str(name))]):
                self.scripts += [name] if name.endswith(".py") else []


def _without_words(call: ast.Call) -> list[ast.keyword]:
    """The keywords of a call, without what is for who reads a field or an option."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    words = FOR_READERS.get(called)
    return [k for k in call.keywords if k.arg != words or not isinstance(k.value, (ast.Constant, ast.JoinedStr))]


def _has_docstring(part: ast.AST) -> bool:
    if not isinstance(part, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    first = part.body[0] if part.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
