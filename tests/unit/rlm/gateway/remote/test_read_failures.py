"""Which failed reads of the store are logged."""

from __future__ import annotations

import logging

import pytest

from rlm.gateway.model.actions import PartitionFetch
from rlm.gateway.remote import read_failures
from rlm.gateway.remote.read_failures import ReadFailures
from rsm.segment.errors import NotFoundError, RetriableError
from tests.log_dir_builder import ManualClock, topic_id_partition

_DOWN = RetriableError("the store does not answer")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def failures(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> ReadFailures:
    caplog.set_level(logging.WARNING, read_failures.__name__)
    return ReadFailures(clock)


def _read(partition: int = 0, offset: int = 5) -> PartitionFetch:
    return PartitionFetch(
        topic_id_partition=topic_id_partition(partition=partition),
        offset=offset,
        max_bytes=1,
        local_start_offset=100,
    )


def _lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records]


def test_failure_when_repeated_then_logged_once_a_minute_with_the_number_of_others(
    failures: ReadFailures, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        failures.record(_read(), _DOWN)
    clock.sleep_ms(59_999)
    failures.record(_read(), _DOWN)
    clock.sleep_ms(1)
    failures.record(_read(), _DOWN)

    tip = _read().topic_id_partition
    assert _lines(caplog) == [
        f"cannot serve stored records topic_partition={tip} offset=5 unlogged_count={count}"
        ' error="the store does not answer"'
        for count in (0, 3)
    ]


def test_failure_when_the_partition_or_the_cause_is_another_then_logged(
    failures: ReadFailures, caplog: pytest.LogCaptureFixture
) -> None:
    failures.record(_read(), _DOWN)
    failures.record(_read(partition=1), _DOWN)
    failures.record(_read(), RetriableError("the store is slow", attempts=1))
    failures.record(_read(), RetriableError("the store is slow", attempts=2))

    assert len(caplog.records) == 3


def test_failure_when_a_thousand_are_young_then_others_are_only_counted(
    failures: ReadFailures, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for partition in range(1_010):
        failures.record(_read(partition), _DOWN)
    assert len(caplog.records) == 1_000
    clock.sleep_ms(60_000)
    failures.record(_read(), _DOWN)

    assert "unlogged_count=10 " in _lines(caplog)[-1]


def test_failure_when_of_a_bug_then_an_error_with_its_trace(
    failures: ReadFailures, caplog: pytest.LogCaptureFixture
) -> None:
    failures.record(_read(), ValueError("a bug"))

    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None


def test_failure_when_an_object_is_missing_then_left_to_the_anomalies(
    failures: ReadFailures, caplog: pytest.LogCaptureFixture
) -> None:
    failures.record(_read(), NotFoundError("no such object"))

    assert caplog.records == []
