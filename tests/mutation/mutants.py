"""Every mutant of a source file, in the file's order.

mutmut's own search skips decorated functions, tables of classes and tables of modules. Here the
operators are applied to every node of the file. A change of an expression replaces its text alone,
so all other lines keep their numbers.
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate

import libcst as cst
from libcst.metadata import (
    CodeRange,
    MetadataWrapper,
    PositionProvider,
    WhitespaceInclusivePositionProvider,
)

from tests.mutation.groups import CHECKOUT
from tests.mutation.operators import changes_nothing_below, mutations

MODULE_LEVEL = "<module>"

_HEADED = (cst.If, cst.While, cst.For, cst.With, cst.MatchCase, cst.ExceptHandler, cst.FunctionDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one source file.

    `before` and `after` are the changed lines without their indentation. `lines` are the first and
    the last line of the changed statement, `function_lines` those of the function around it.
    """

    file: str
    function: str
    line: int
    kind: str
    before: str
    after: str
    lines: tuple[int, int]
    function_lines: tuple[int, int]
    source: str

    @property
    def diff(self) -> str:
        """The change in one line."""
        return f"{self.before}  →  {self.after or '(nothing)'}"


def mutants_of(file: str) -> list[Mutant]:
    """Find the mutants of a file below the checkout."""
    return mutants_of_source(file, (CHECKOUT / file).read_text())


def mutants_of_source(file: str, source: str) -> list[Mutant]:
    """Find the mutants of this source text, without duplicates."""
    finder = _Finder(file, source)
    MetadataWrapper(cst.parse_module(source)).visit(finder)
    return finder.found


def drawn(mutants: Sequence[Mutant], *, seed: str, at_most: int) -> list[Mutant]:
    """Draw a sample, in the mutants' order; it depends on the mutants and the seed alone."""
    if len(mutants) <= at_most:
        return list(mutants)
    chosen = random.Random(seed).sample(range(len(mutants)), at_most)
    return [mutants[index] for index in sorted(chosen)]


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider, WhitespaceInclusivePositionProvider)

    def __init__(self, file: str, source: str) -> None:
        super().__init__()
        self.found: list[Mutant] = []
        self._file = file
        self._source = source
        self._lines = source.splitlines()
        self._line_starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
        self._sources = {source}
        self._scopes: list[cst.ClassDef | cst.FunctionDef] = []
        self._statements: list[tuple[cst.CSTNode, tuple[int, int]]] = []
        self._module = cst.Module([])

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Module):
            self._module = node
        if changes_nothing_below(node) or self._is_message(node):
            return False
        lines = self._statement_lines(node)
        if lines is not None:
            self._statements.append((node, lines))
        if isinstance(node, cst.ClassDef | cst.FunctionDef):
            self._scopes.append(node)
        for kind, changed in mutations(node):
            self._add(kind, node, changed)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if self._statements and self._statements[-1][0] is original_node:
            self._statements.pop()
        if self._scopes and self._scopes[-1] is original_node:
            self._scopes.pop()

    def _is_message(self, node: cst.CSTNode) -> bool:
        if not isinstance(node, cst.FormattedString) or not self._statements:
            return False
        statement = self._statements[-1][0]
        return isinstance(statement, cst.SimpleStatementLine) and any(
            isinstance(part, cst.Raise) for part in statement.body
        )

    def _statement_lines(self, node: cst.CSTNode) -> tuple[int, int] | None:
        """Return the lines of a simple statement, or those in front of a block's body."""
        if isinstance(node, cst.SimpleStatementLine | cst.Match):
            return self._range(node)
        if isinstance(node, _HEADED):
            first, _ = self._range(node)
            return first, max(first, self._range(node.body)[0] - 1)
        return None

    def _range(self, node: cst.CSTNode) -> tuple[int, int]:
        position = self.get_metadata(PositionProvider, node)
        assert isinstance(position, CodeRange)
        return position.start.line, position.end.line

    def _add(self, kind: str, node: cst.CSTNode, changed: cst.CSTNode) -> None:
        source = self._changed_source(node, changed)
        if source in self._sources:
            return
        self._sources.add(source)
        line, before, after = _difference(self._lines, source.splitlines())
        lines = self._statements[-1][1] if self._statements else (line, line)
        function = next((s for s in self._scopes if isinstance(s, cst.FunctionDef)), None)
        self.found.append(
            Mutant(
                file=self._file,
                function=".".join(scope.name.value for scope in self._scopes) or MODULE_LEVEL,
                line=line,
                kind=kind,
                before=before,
                after=after,
                lines=lines,
                function_lines=self._range(function.body) if function else (0, 0),
                source=source,
            )
        )

    def _changed_source(self, node: cst.CSTNode, changed: cst.CSTNode) -> str:
        node, changed = _narrowed(node, changed)
        position = self.get_metadata(WhitespaceInclusivePositionProvider, node, None)
        if isinstance(position, CodeRange):
            start = self._line_starts[position.start.line - 1] + position.start.column
            end = self._line_starts[position.end.line - 1] + position.end.column
            if self._source[start:end] == self._module.code_for_node(node):
                text = self._module.code_for_node(changed)
                return self._source[:start] + text + self._source[end:]
        whole = self._module.deep_replace(node, changed)
        assert isinstance(whole, cst.Module)
        return whole.code


def _narrowed(node: cst.CSTNode, changed: cst.CSTNode) -> tuple[cst.CSTNode, cst.CSTNode]:
    """Return the parts of both nodes that contain all differences.

    Replacing the text of a small part takes a thousandth of the time of replacing a tree.
    """
    while type(node) is type(changed):
        pairs = [
            (before, after)
            for each in fields(node)
            if (before := getattr(node, each.name)) is not (after := getattr(changed, each.name))
        ]
        if len(pairs) != 1 or not all(isinstance(part, cst.CSTNode) for part in pairs[0]):
            break
        ((node, changed),) = pairs
    return node, changed


def _difference(old: list[str], new: list[str]) -> tuple[int, str, str]:
    """Return the first changed line's number, and the changed lines before and after."""
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    before = [line.strip() for _, first, last, _, _ in changes for line in old[first:last]]
    after = [line.strip() for _, _, _, first, last in changes for line in new[first:last]]
    return changes[0][1] + 1, " ".join(before), " ".join(after)
