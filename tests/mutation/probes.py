"""Probes: loaded source files that note which of their statements run.

A tracer slows down all code of a test, of which these files are a small part. A probe is one
assignment before a statement, and only these files have probes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType
from typing import TypeVar

from tests.mutation.groups import CHECKOUT

HITS = "statements_that_ran"
"""The module's variable for its hits: the byte of a statement's first line is 1 once it ran."""

_Node = TypeVar("_Node", bound=ast.AST)


class Probes(MetaPathFinder):
    """Loads these files, named below the checkout, with probes. For one thread."""

    def __init__(self, files: Iterable[str]) -> None:
        self._files = {module_name(file): file for file in files}
        self._hits: dict[str, bytearray] = {}

    def install(self) -> None:
        """Load the files with probes from now on. None of them may be loaded already."""
        loaded = self._files.keys() & sys.modules.keys()
        assert not loaded, loaded
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(fullname)
        if file is None:
            return None
        path_of_file = str(CHECKOUT / file)
        hits = self._hits[file] = bytearray((CHECKOUT / file).read_bytes().count(b"\n") + 2)
        loader = _ProbedLoader(fullname, path_of_file, hits)
        return spec_from_file_location(fullname, path_of_file, loader=loader)

    def take(self) -> dict[str, set[int]]:
        """Return the first lines of the statements that ran since the last call, of each file."""
        taken = {file: _marked_lines(hits) for file, hits in self._hits.items() if 1 in hits}
        for hits in self._hits.values():
            hits[:] = bytes(len(hits))
        return taken


def module_name(file: str) -> str:
    """Return the name that a file below the checkout is imported by."""
    return file.removesuffix(".py").replace("/", ".")


def with_probes(source: str) -> ast.Module:
    """Parse a module and put a probe in front of each statement."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            node.body = _after_probe(node.body)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, _insert_probes(block))
    return tree


def _marked_lines(hits: bytearray) -> set[int]:
    lines = set()
    line = hits.find(1)
    while line >= 0:
        lines.add(line)
        line = hits.find(1, line + 1)
    return lines


def _insert_probes(block: list[ast.stmt]) -> list[ast.stmt]:
    return [each for statement in block for each in (*_probe(statement), statement)]


def _probe(statement: ast.stmt) -> list[ast.stmt]:
    """Return no probe for a docstring or a future import, which must stay first."""
    match statement:
        case ast.Expr(value=ast.Constant()) | ast.ImportFrom(module="__future__"):
            return []
    store = ast.parse(f"{HITS}[{statement.lineno}] = 1").body
    return [_move(each, statement) for each in store]


def _after_probe(body: ast.expr) -> ast.expr:
    store = ast.parse(
        f"{HITS}.__setitem__({body.lineno}, 1)", mode="eval"
    ).body  # the call returns None
    return ast.copy_location(ast.BoolOp(ast.Or(), [_move(store, body), body]), body)


def _move(probe: _Node, to: ast.AST) -> _Node:
    for node in ast.walk(probe):
        ast.copy_location(node, to)
    return probe


class _ProbedLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, hits: bytearray) -> None:
        super().__init__(name, path)
        self._hits = hits

    def get_code(self, fullname: str) -> CodeType:
        tree = with_probes(self.get_data(self.path).decode())
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[HITS] = self._hits
        super().exec_module(module)
