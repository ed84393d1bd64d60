"""The checkout as the architecture tests see it: its files, modules, functions and imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PRODUCT_PACKAGES = ("rlm", "rsm", "rlmm", "spark_tools")
PROGRAMS = ("demo", "bench")
_NOT_OURS = {"build", "dist", "__pycache__"}
_OURS_THOUGH_HIDDEN = {".ci", ".gitattributes", ".gitignore"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class SourceFile:
    """One Python file, parsed when first asked for."""

    path: Path

    @property
    def name(self) -> str:
        """Path below the checkout, as an editor opens it."""
        return self.path.relative_to(CHECKOUT).as_posix()

    @property
    def module(self) -> str:
        """Dotted name; a package has its own, without __init__."""
        parts = self.path.relative_to(CHECKOUT).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_generated(self) -> bool:
        """Whether protoc writes it."""
        return self.path.stem.endswith("_pb2")

    @property
    def line_count(self) -> int:
        """Lines, blank ones and comments included."""
        return len(self.path.read_text().splitlines())

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.path.read_text(), self.name)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every function and method, nested ones too."""
        return tuple(node for node in _statements(self.tree) if isinstance(node, Function))

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Every import statement, also those inside functions."""
        return tuple(node for node in _statements(self.tree) if isinstance(node, Import))

    def imported_names(self) -> Iterator[str]:
        """What it imports, as dotted names that are a module or something in one."""
        for node in self.imports:
            for alias in node.names:
                if isinstance(node, ast.Import):
                    yield alias.name
                else:
                    yield f"{node.module}.{alias.name}"


@cache
def _source_file(path: Path) -> SourceFile:
    """One object for each path, so that no file is parsed twice."""
    return SourceFile(path)


def _statements(parent: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node: expressions, which are most of a tree, are passed over."""
    for node in ast.iter_child_nodes(parent):
        if not isinstance(node, ast.expr):
            yield node
            yield from _statements(node)


def python_files(*roots: str) -> list[SourceFile]:
    """The Python files below these top-level directories, generated ones included."""
    found = (path for root in roots for path in (CHECKOUT / root).rglob("*.py"))
    return [_source_file(path) for path in sorted(found)]


def handwritten_files(*roots: str) -> list[SourceFile]:
    """The same without generated ones."""
    return [file for file in python_files(*roots) if not file.is_generated]


def repository_files() -> Iterator[Path]:
    """Every file that could be committed, whatever its kind."""
    waiting = [CHECKOUT]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            if path.is_dir() and _may_be_committed(path):
                waiting.append(path)
            elif path.is_file() and _may_be_committed(path):
                yield path


def _may_be_committed(path: Path) -> bool:
    if path.name.startswith("."):
        return path.name in _OURS_THOUGH_HIDDEN
    return path.name not in _NOT_OURS and path.suffix not in {".egg-info", ".pyc"}
