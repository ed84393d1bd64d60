"""The tables of docs/spark.md name the options that the data source accepts, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_tools import connection
from spark_tools.reading.options import OPTIONS, PREFIXES
from spark_tools.schemas.settings import REGISTRY_KEYS, REGISTRY_PREFIX

_DOCS = Path(__file__).resolve().parents[4] / "docs" / "spark.md"
_SHORTENED = "…."
_ACCEPTED = frozenset(
    {*OPTIONS, *connection.OPTIONS, *(f"{REGISTRY_PREFIX}{key}" for key in REGISTRY_KEYS)}
)


def documented() -> frozenset[str]:
    """The names in the first column of each table of options."""
    tables = re.findall(r"^\| option \|.*\n\|[-|]+\n((?:\|.*\n)+)", _DOCS.read_text(), re.MULTILINE)
    cells = [row.split("|")[1] for table in tables for row in table.splitlines()]
    return frozenset(name for cell in cells for name in re.findall(r"`([^`]+)`", cell))


def meant(name: str) -> list[str]:
    """Return the accepted options that a documented name means."""
    if name.endswith("*"):
        return [each for each in _ACCEPTED if each.startswith(name.removesuffix("*"))]
    if name.startswith(_SHORTENED):
        return [each for each in _ACCEPTED if each.endswith(name.removeprefix("…"))]
    return [name] if name in _ACCEPTED else []


def test_tables_when_read_then_there_are_two_with_names() -> None:
    assert {"subscribe", "leaseMs", "kafka.*", "schema.registry.url"} <= documented()


@pytest.mark.parametrize("name", sorted(documented()))
def test_documented_option_when_looked_up_then_the_source_accepts_it(name: str) -> None:
    if name.endswith("*"):
        assert name.startswith(PREFIXES)
    else:
        assert len(meant(name)) == 1


@pytest.mark.parametrize("name", sorted(_ACCEPTED))
def test_accepted_option_when_looked_up_then_a_table_has_it(name: str) -> None:
    names = {each for each in documented() if each != f"{REGISTRY_PREFIX}*"}

    assert any(name in meant(each) for each in names)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_accepted_prefix_when_looked_up_then_a_table_has_it(prefix: str) -> None:
    assert any(each.startswith(prefix) and each.endswith("*") for each in documented())
