from __future__ import annotations

import pytest

from spark_tools.audit.page.readable import Price, count, duration, size


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1_610_612_736, "1.5 GiB"),
        (1 << 50, "1.0 PiB"),
        (5000 << 60, "5,000.0 EiB"),
    ],
)
def test_size_when_shown_then_in_the_unit_that_fits(size_bytes: int, shown: str) -> None:
    assert size(size_bytes) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "0 s"),
        (400, "0.4 s"),
        (1_000, "1 s"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (90_061_000, "1 d 1 h"),
        (604_800_000, "7 d"),
    ],
)
def test_duration_when_shown_then_by_its_two_largest_units(milliseconds: int, shown: str) -> None:
    assert duration(milliseconds) == shown


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(0, "0.00 EUR"), (1, "< 0.01 EUR"), (1 << 30, "0.02 EUR"), (1 << 50, "24,117.25 EUR")],
)
def test_price_when_shown_then_with_its_currency(size_bytes: int, shown: str) -> None:
    assert Price(per_gib_month=0.023, currency="EUR").of(size_bytes) == shown


def test_count_when_shown_then_as_one_or_several() -> None:
    assert [count(n, "range") for n in (0, 1, 1_234)] == ["0 ranges", "1 range", "1,234 ranges"]
