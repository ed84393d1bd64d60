from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.config.amounts import format_duration, format_size, parse_duration, parse_size

AMOUNTS = st.integers(min_value=0, max_value=2**62)


@given(AMOUNTS)
def test_duration_when_formatted_then_parsing_returns_it(duration_ms: int) -> None:
    assert parse_duration(format_duration(duration_ms)) == duration_ms


@given(AMOUNTS)
def test_size_when_formatted_then_parsing_returns_it(size_bytes: int) -> None:
    assert parse_size(format_size(size_bytes)) == size_bytes


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("7d", 604_800_000),
        ("12h", 43_200_000),
        ("30m", 1_800_000),
        ("90s", 90_000),
        ("500ms", 500),
        ("90 s", 90_000),
        ("5", 5_000),
        ("0", 0),
    ],
)
def test_duration_when_it_has_a_unit_then_it_counts_else_that_of_the_option(
    text: str, duration_ms: int
) -> None:
    assert parse_duration(text, unit_ms=1000) == duration_ms


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("50GiB", 50 << 30),
        ("50gib", 50 << 30),
        ("64MB", 64_000_000),
        ("1kB", 1000),
        ("7B", 7),
        ("3", 3 << 20),
    ],
)
def test_size_when_it_has_a_unit_then_it_counts_else_that_of_the_option(
    text: str, size_bytes: int
) -> None:
    assert parse_size(text, unit_bytes=1 << 20) == size_bytes


@pytest.mark.parametrize("text", ["", " ", "-1", "-7d", "1.5h", "d", "7d12h", "1e3", "٣d", "7\nd"])
def test_duration_when_it_is_none_then_the_error_shows_it_and_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration like 7d") as raised:
        parse_duration(text)

    assert repr(text) in str(raised.value)


@pytest.mark.parametrize("text", ["7w", "7D", "7M", "7GiB"])
def test_duration_when_its_unit_is_unknown_then_the_error_lists_the_units(text: str) -> None:
    with pytest.raises(ValueError, match="use ms, s, m, h, d"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["7G", "7d", "7bits"])
def test_size_when_its_unit_is_unknown_then_the_error_lists_the_units(text: str) -> None:
    with pytest.raises(ValueError, match="use B, KiB, MiB"):
        parse_size(text)
