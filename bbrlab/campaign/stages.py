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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    tree = ast.parse(path.read_bytes(), str(path))
    nodes = list(ast.walk(tree))
    imports, scripts = tuple(_imports(nodes)), tuple(_scripts(nodes))
    _Stripped().visit(tree)
    return _Parsed(_sha256(ast.dump(tree)), bool(tree.body), imports, scripts)


def _imports(nodes: Iterable[ast.AST]) -> Iterator[_Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (_Import(alias.name, "", alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (_Import(module, alias.name, alias.asname or alias.name) for alias in node.names)


def _scripts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="with_name"), args=[ast.Constant(value=str(name))]) if name.endswith(
                ".py"
            ):
                yield name


def _imported_by_notebook(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    imports = tuple(_imports(ast.walk(ast.parse(code, str(path)))))
    return _Parsed("", True, imports, ()).modules


class _Stripped(ast.NodeTransformer):
    """A syntax tree without imports, docstrings, and the texts that fields and options have for who reads them."""

    def visit(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return None
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return None
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and _has_docstring(
            node.body
        ):
            del node.body[0]
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            text = FOR_READERS.get(called)
            node.keywords = [k for k in node.keywords if k.arg != text or not _is_text(k.value)]
        self.generic_visit(node)
        return node


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, (ast.Constant, ast.JoinedStr))


def _has_docstring(body: Sequence[ast.stmt]) -> bool:
    first = body[0] if body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
