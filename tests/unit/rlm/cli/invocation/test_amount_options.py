from __future__ import annotations

import pytest
import typer

from rlm.cli.invocation.amount_options import durations, seconds, sizes

MINUTE_MS = 60_000
MIB = 1 << 20


@pytest.mark.parametrize(("text", "minutes"), [("90", 90), ("2h", 120), ("60s", 1), (3, 3)])
def test_duration_when_parsed_then_is_in_the_options_unit(text: object, minutes: int) -> None:
    assert durations(unit_ms=MINUTE_MS)(text) == minutes


@pytest.mark.parametrize("number", [-1, -2])
def test_duration_when_a_number_is_special_then_it_is_taken_as_it_is(number: int) -> None:
    assert durations(special=[-1, -2])(str(number)) == number


@pytest.mark.parametrize("text", ["-1", "-1d", "90s", "one", ""])
def test_duration_when_not_a_multiple_of_the_unit_then_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        durations(unit_ms=MINUTE_MS)(text)


def test_duration_when_longer_than_kafka_can_store_then_refused() -> None:
    assert durations()(str(2**63 - 1)) == 2**63 - 1
    with pytest.raises(typer.BadParameter, match="106751991167d"):
        durations()("106751991168d")


def test_size_when_parsed_then_is_in_the_options_unit() -> None:
    assert [sizes(unit_bytes=MIB)(text) for text in ("64", "1GiB")] == [64, 1024]


@pytest.mark.parametrize("text", ["1MiB", "3GiB", "-1"])
def test_size_when_out_of_range_then_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        sizes(least_bytes=5 * MIB, most_bytes=2 << 30)(text)


@pytest.mark.parametrize(
    ("text", "expected_s"), [("30", 30.0), ("0.5", 0.5), ("5m", 300.0), (30.0, 30.0)]
)
def test_seconds_when_parsed_then_may_have_a_fraction(text: object, expected_s: float) -> None:
    assert seconds()(text) == expected_s


@pytest.mark.parametrize("text", ["inf", "nan", "0", "-1", "31d", "50ms", "soon"])
def test_seconds_when_no_time_to_wait_then_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        seconds()(text)
