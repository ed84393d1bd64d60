from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.log_line import LogLine


def test_line_when_it_has_fields_then_they_follow_the_message() -> None:
    line = LogLine("copied segment", topic="orders", reason="a b")

    assert str(line) == 'copied segment topic=orders reason="a b"'


def test_line_when_it_has_no_fields_then_is_the_message() -> None:
    assert str(LogLine("100 % done")) == "100 % done"


def test_line_when_a_field_is_named_as_a_parameter_then_it_is_a_field() -> None:
    assert str(LogLine("x", message="m", self="s", name="n")) == "x message=m self=s name=n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("\x1b[2J", '"\\u001b[2J"'),
        ("a\x9b2J", '"a\\u009b2J"'),
        ("a\x7f b", '"a\\u007f b"'),
        ("a\u2028b", '"a\\u2028b"'),
        ("Zürich", "Zürich"),
        ("Zürich West", '"Zürich West"'),
    ],
)
def test_line_when_a_value_has_control_characters_then_escaped(value: str, shown: str) -> None:
    line = str(LogLine("x", value=value))

    assert line == f"x value={shown}"
    assert value == shown or json.loads(shown) == value


@given(value=st.text())
def test_line_when_a_value_has_line_ends_then_is_one_line(value: str) -> None:
    assert "\n" not in str(LogLine("x", value=value))


def test_line_when_only_pythons_own_formatter_is_installed_then_no_field_is_lost(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """For example in a Spark driver."""
    record = logging.makeLogRecord(
        {"msg": LogLine("the store was slow", chunk="a%s", duration_ms=9)}
    )

    logging.StreamHandler().handle(record)

    assert capfd.readouterr().err == "the store was slow chunk=a%s duration_ms=9\n"
