"""A mutant's functions put in place of the loaded ones, without importing the module again.

A function keeps its identity and gets other code, so all importers call the mutant.
This works where the mutant differs within functions only. Where a table of a class or module, a
default or a decorator's argument differs, the module must be imported again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType

from tests.mutation.groups import CHECKOUT
from tests.mutation.mutants import Mutant


@dataclass(frozen=True, slots=True)
class Swap:
    """Functions, and the code that each of them gets."""

    codes: tuple[tuple[FunctionType, CodeType], ...]

    def apply(self) -> None:
        """Let the functions run the mutant's code from now on, in this process."""
        for function, code in self.codes:
            function.__code__ = code


class LoadedFunctions:
    """The functions of the modules that are loaded now."""

    def __init__(self) -> None:
        self._by_code: dict[tuple[str, int, str], list[FunctionType]] = {}
        for function in gc.get_objects():
            if isinstance(function, FunctionType):
                self._by_code.setdefault(_identity(function.__code__), []).append(function)

    def swap_for(self, mutant: Mutant) -> Swap | None:
        """Return what makes the loaded functions the mutant; None if an import is needed."""
        path = str(CHECKOUT / mutant.file)
        old = compiled(path, (CHECKOUT / mutant.file).read_text())
        new = compile(mutant.source, path, "exec", dont_inherit=True)
        if _own_signature(old) != _own_signature(new):
            return None
        swaps: list[tuple[FunctionType, CodeType]] = []
        for before, after in zip(_functions(old), _functions(new), strict=True):
            if _signature(before) == _signature(after):
                continue
            loaded = self._by_code.get(_identity(before), [])
            if not loaded or before.co_freevars != after.co_freevars or self._has_inner(before):
                return None
            swaps.extend((function, after) for function in loaded)
        return Swap(tuple(swaps))

    def _has_inner(self, code: CodeType) -> bool:
        """Return whether inner functions of this one still exist."""
        inner = f"{code.co_qualname}.<locals>."
        return any(
            file == code.co_filename and name.startswith(inner) for file, _, name in self._by_code
        )


@cache
def compiled(path: str, source: str) -> CodeType:
    """Compile a file as an import does."""
    return compile(source, path, "exec", dont_inherit=True)


def _identity(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_qualname


def _is_class_body(code: CodeType) -> bool:
    return "__module__" in code.co_names and "__qualname__" in code.co_names


def _inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the functions of a module and of its classes, not those within functions."""
    for inner in _inner(code):
        if _is_class_body(inner):
            yield from _functions(inner)
        else:
            yield inner


def _own_signature(code: CodeType) -> object:
    """Return what a module executes when it is imported, including the bodies of its classes."""
    return (
        *_flat(code),
        *(_own_signature(one) if _is_class_body(one) else one.co_name for one in _inner(code)),
    )


def _signature(code: CodeType) -> object:
    """Return what a function executes, regardless of line numbers."""
    return (*_flat(code), *(_signature(inner) for inner in _inner(code)))


def _flat(code: CodeType) -> tuple[object, ...]:
    constants = [
        repr(constant) for constant in code.co_consts if not isinstance(constant, CodeType)
    ]
    return (
        code.co_code,
        code.co_exceptiontable,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        *constants,
    )
