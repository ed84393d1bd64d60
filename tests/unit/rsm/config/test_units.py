from __future__ import annotations

import pytest

from rsm.config.units import unit_of


@pytest.mark.parametrize(
    ("name", "text", "number"),
    [
        ("interval_ms", "7d", "604800000"),
        ("interval_ms", "90 s", "90000"),
        ("window_seconds", "2m", "120"),
        ("part_bytes", "16MiB", "16777216"),
        ("copy_bytes_per_second", "64MB", "64000000"),
    ],
)
def test_amount_when_it_has_a_unit_then_is_a_number_of_the_fields_unit(
    name: str, text: str, number: str
) -> None:
    assert unit_of(name).in_units(text) == number


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("interval_ms", "500"),
        ("interval_ms", "-1"),
        ("interval_ms", "1w"),
        ("interval_ms", "1GiB"),
        ("window_seconds", "30"),
        ("window_seconds", "1500ms"),
        ("part_bytes", "1h"),
        ("thread_count", "5s"),
        ("requests_per_second", "1KiB"),
    ],
)
def test_text_when_it_is_no_amount_with_a_unit_of_the_field_then_is_unchanged(
    name: str, text: str
) -> None:
    assert unit_of(name).in_units(text) == text


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("interval_ms", 604_800_000, "7d"),
        ("interval_ms", 500, ""),
        ("interval_ms", -1, ""),
        ("window_seconds", 120, "2m"),
        ("window_seconds", 1, ""),
        ("part_bytes", 16 << 20, "16MiB"),
        ("thread_count", 60_000, ""),
    ],
)
def test_number_when_readable_then_is_shorter_with_a_larger_unit(
    name: str, number: int, text: str
) -> None:
    assert unit_of(name).readable(number) == text
