from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from rsm.segment.errors import NotFoundError, RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import DeleteOutcome
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.settings import FaultPlan
from rsm.storage.wrappers.faulty import FaultyChunkStorage
from rsm.storage.wrappers.observed import ObservedChunkStorage
from rsm.storage.wrappers.slow import SlowChunkStorage
from tests.contract.sources import source_of
from tests.fakes.clock import FakeClock
from tests.log_records import fields_of


def _observed(
    *, delay_ms: int = 30, fail_share: float = 0.0
) -> tuple[ObservedChunkStorage, list[tuple[str, str, int]]]:
    seen: list[tuple[str, str, int]] = []
    clock = FakeClock()
    faulty = FaultyChunkStorage(
        MemoryChunkStorage(wall_ms=lambda: 0), FaultPlan(fail_share=fail_share)
    )
    storage = ObservedChunkStorage(
        SlowChunkStorage(faulty, clock, delay_ms=delay_ms),
        clock,
        lambda *what: seen.append(what),
        slow_ms=1_000,
    )
    return storage, seen


def test_observed_when_request_succeeds_then_reports_ok_and_its_time() -> None:
    storage, seen = _observed()
    storage.create("a")
    first = ByteRange(start_position=0, end_position=1)
    storage.read_range_into("a", first, memoryview(bytearray(1)))
    assert seen == [("create", "ok", 30), ("read_range", "ok", 30)]


def test_observed_when_request_fails_then_reports_the_error_and_raises_it() -> None:
    storage, seen = _observed()
    with pytest.raises(NotFoundError):
        storage.info("a")
    assert seen == [("info", "NotFoundError", 30)]


@pytest.mark.parametrize(("fail_share", "result"), [(0.0, "ok"), (1.0, "RetriableError")])
def test_observed_when_many_are_deleted_then_it_is_one_request(
    fail_share: float, result: str
) -> None:
    storage, seen = _observed(fail_share=fail_share)
    storage.delete_many(["a", "b"])
    assert seen == [("delete_many", result, 30)]


def test_observed_when_a_deletion_of_many_raises_then_reports_the_error() -> None:
    class _Unreachable(MemoryChunkStorage):
        def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
            raise RetriableError("the store is unreachable", names=len(names))

    seen: list[tuple[str, str, int]] = []
    storage = ObservedChunkStorage(
        _Unreachable(wall_ms=lambda: 0), FakeClock(), lambda *what: seen.append(what), slow_ms=1_000
    )

    with pytest.raises(RetriableError):
        storage.delete_many(["a", "b"])

    assert seen == [("delete_many", "RetriableError", 0)]


def test_observed_when_chunks_are_listed_then_reports_at_the_end() -> None:
    storage, seen = _observed()
    assert list(storage.list("")) == []
    assert seen == [("list", "ok", 30)]


def test_observed_when_a_request_is_slow_for_what_it_moves_then_it_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage, _ = _observed(delay_ms=1_100)
    with caplog.at_level(logging.INFO, "rsm.storage.wrappers.observed"):
        storage.create_with_content("large", source_of(b"x" * 200 * 1024))
        storage.read_range("large", ByteRange(start_position=0, end_position=10))
        list(storage.list(""))

    (record,) = caplog.records
    found = (fields_of(record)[key] for key in ("operation", "chunk", "result", "duration_ms"))
    assert tuple(found) == ("read_range", "large", "ok", 1_100)
