from __future__ import annotations

from collections.abc import Iterator
from importlib.util import module_from_spec
from types import CodeType

import pytest

import rsm.segment.ranges as loaded
from tests.mutation.groups import CHECKOUT
from tests.mutation.probes import HITS, Probes, with_probes

SOURCE = '''"""Docstring."""
from __future__ import annotations
def sign(number):
    """Docstring."""
    if number < 0:
        return -1
    elif (
        number > 0
    ):
        return 1
    try:
        match number:
            case 0:
                return 0
    finally:
        pass
key = lambda number: (
    number)
'''
AT_IMPORT = {3, 17}
FILE = "rsm/segment/ranges.py"


@pytest.mark.parametrize(
    ("name", "number", "lines"),
    [
        ("sign", -1, {5, 6}),
        ("sign", 1, {5, 7, 10}),
        ("sign", 0, {5, 7, 11, 12, 14, 16}),
        ("key", 0, {18}),
    ],
)
def test_probes_when_code_runs_then_the_first_lines_of_its_statements(
    name: str, number: int, lines: set[int]
) -> None:
    hits: dict[int, int] = {}
    module = {HITS: hits}
    exec(compile(with_probes(SOURCE), "f", "exec", dont_inherit=True), module)  # noqa: S102  # SOURCE
    assert hits.keys() == AT_IMPORT
    hits.clear()

    assert module[name](number) == number  # type: ignore[operator]  # a function of the source

    assert hits.keys() == lines


def test_probes_when_a_module_is_loaded_then_it_notes_each_run_once() -> None:
    probes = Probes([FILE])
    spec = probes.find_spec(loaded.__name__, None)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    at_import = probes.take()[FILE]

    part = module.OffsetRange(start_offset=1, end_offset=3)
    probes.take()
    found = 2 in part

    (line,) = probes.take()[FILE]
    assert found
    assert line not in at_import
    assert "return" in (CHECKOUT / FILE).read_text().splitlines()[line - 1]
    assert probes.take() == {}


def test_probes_when_put_into_a_file_then_each_function_is_found_as_without() -> None:
    source = (CHECKOUT / FILE).read_text()

    probed = compile(with_probes(source), "f", "exec", dont_inherit=True)

    assert list(_functions(probed)) == list(_functions(compile(source, "f", "exec")))


def _functions(code: CodeType) -> Iterator[tuple[int, str]]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner.co_firstlineno, inner.co_qualname
            yield from _functions(inner)
