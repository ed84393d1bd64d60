"""Many partitions of one request: looked up together, answered at once, and in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event

import pytest

from rlm.gateway.model.context import GatewayContext, QuerySettings
from rlm.gateway.rewriting.remote_log_queries import QueryDependency, RemoteLogQuery, run_queries
from rlm.wire.error_codes import ErrorCode
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import NotFoundError
from rsm.segment.ids import TopicIdPartition
from rsm.system_clock import SystemClock
from tests.log_dir_builder import ManualClock
from tests.remote_world import TIP, InlineExecutor
from tests.unit.rlm.gateway.gateway_world import GatewayWorld

_DEADLINE_S = 10.0


class _Asked(TopicBasedRemoteLogMetadataManager):
    """Records each call of `caught_up` with its time limit."""

    def __init__(self, *, complete: bool = True) -> None:
        self.asked: list[tuple[frozenset[TopicIdPartition], int | None]] = []
        self._complete = complete

    def those_caught_up(
        self, partitions: Iterable[TopicIdPartition], *, timeout_ms: int | None = None
    ) -> frozenset[TopicIdPartition]:
        found = frozenset(partitions)
        self.asked.append((found, timeout_ms))
        return found if self._complete else frozenset()


def _context(
    metadata: _Asked,
    *,
    pool: Executor | None = None,
    clock: Clock | None = None,
    timeout_ms: int = 10_000,
) -> GatewayContext:
    query_settings = QuerySettings(
        store=pool or InlineExecutor(),
        topic=InlineExecutor(),
        clock=clock or SystemClock(),
        timeout_ms=timeout_ms,
    )
    return replace(GatewayWorld().context(), metadata=metadata, query_settings=query_settings)


def _query(
    number: int,
    ask: Callable[[], object],
    *,
    waits_for: QueryDependency | None = QueryDependency.STORE,
) -> RemoteLogQuery[object]:
    return RemoteLogQuery(
        topic_id_partition=replace(TIP, partition=number),
        run=ask,
        failed=lambda code: code,
        waits_for=waits_for,
    )


def test_answers_when_of_many_partitions_then_the_metadata_is_asked_once_for_all() -> None:
    metadata = _Asked()
    queries = [_query(number, lambda: "found") for number in range(300)]

    answers = run_queries(_context(metadata, clock=ManualClock()), queries, timeout_ms=500)

    assert answers == ["found"] * 300
    assert metadata.asked == [(frozenset(each.topic_id_partition for each in queries), 500)]


def test_answers_when_each_waits_then_are_found_at_once() -> None:
    """Each lookup returns only once all four run at the same time."""
    together = Barrier(4)

    def ask() -> object:
        together.wait(_DEADLINE_S)
        return "found"

    with ThreadPoolExecutor(4) as pool:
        queries = [_query(number, ask) for number in range(4)]
        answers = run_queries(_context(_Asked(), pool=pool), queries)

    assert answers == ["found"] * 4


def test_answers_when_some_take_too_long_then_these_are_timed_out_and_the_others_there() -> None:
    """KIP-1075: the client's timeout counts if it is shorter."""
    go_on = Event()

    def slow() -> object:
        go_on.wait(_DEADLINE_S)
        return "late"

    with ThreadPoolExecutor(2) as pool:
        queries = [
            _query(0, slow),
            _query(1, lambda: "found"),
            _query(2, lambda: "known", waits_for=None),
        ]
        answers = run_queries(_context(_Asked(), pool=pool), queries, timeout_ms=200)
        go_on.set()

    assert answers == [ErrorCode.REQUEST_TIMED_OUT, "found", "known"]


def test_answers_when_the_store_hangs_then_what_waits_for_the_topic_alone_is_there() -> None:
    """A client's DeleteRecords needs no store."""
    go_on = Event()
    with ThreadPoolExecutor(1) as pool:
        context = _context(_Asked(), pool=pool)
        run_queries(context, [_query(0, lambda: go_on.wait(_DEADLINE_S))], timeout_ms=50)

        answers = run_queries(context, [_query(1, lambda: "done", waits_for=QueryDependency.TOPIC)])
        go_on.set()

    assert answers == ["done"]


def test_answers_when_the_client_would_wait_longer_then_the_gateways_own_time_holds() -> None:
    metadata = _Asked()

    run_queries(_context(metadata, timeout_ms=70), [_query(0, lambda: 0)], timeout_ms=30_000)
    run_queries(_context(metadata, timeout_ms=70), [_query(0, lambda: 0)], timeout_ms=0)

    assert [timeout_ms for _, timeout_ms in metadata.asked] == [70, 70]


def test_answers_when_the_rewrite_had_to_wait_for_a_thread_then_that_counts() -> None:
    metadata, clock = _Asked(), ManualClock()
    context = _context(metadata, clock=clock, timeout_ms=70)
    started_ms = clock.monotonic_ms()

    clock.now_ms += 60
    run_queries(replace(context, started_ms=started_ms), [_query(0, lambda: 0)])
    clock.now_ms += 60
    answers = run_queries(replace(context, started_ms=started_ms), [_query(0, lambda: 0)])

    assert [timeout_ms for _, timeout_ms in metadata.asked] == [10, 0]
    assert answers == [0]  # available data is not delayed


def test_answers_when_the_metadata_is_not_complete_then_nothing_is_asked() -> None:
    """R15."""
    asked: list[int] = []

    clock = ManualClock()
    context = _context(_Asked(complete=False), clock=clock)
    answers = run_queries(context, [_query(0, lambda: asked.append(0))])

    assert (answers, asked) == ([ErrorCode.KAFKA_STORAGE_ERROR], [])


def test_answers_when_one_fails_then_the_others_are_there() -> None:
    def fail() -> object:
        raise NotFoundError("an object is missing")

    queries = [_query(0, fail), _query(1, lambda: "found")]

    assert run_queries(_context(_Asked()), queries) == [ErrorCode.KAFKA_STORAGE_ERROR, "found"]


@pytest.mark.parametrize("waits_for", [QueryDependency.STORE, None])
def test_answers_when_one_has_a_bug_then_the_others_are_there_and_the_stack_is_logged_once(
    waits_for: QueryDependency | None, caplog: pytest.LogCaptureFixture
) -> None:
    bug = ValueError("the byte range is invalid")

    def fail() -> object:
        raise bug

    queries = [_query(0, fail, waits_for=waits_for), _query(1, lambda: "found")]

    assert run_queries(_context(_Asked()), queries) == [ErrorCode.KAFKA_STORAGE_ERROR, "found"]
    (logged,) = caplog.records
    assert logged.levelname == "ERROR"
    assert logged.exc_info is not None
    assert logged.exc_info[1] is bug
