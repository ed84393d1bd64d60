"""One log over both tiers: every record once, in order, while the boundary may move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from rlm.remote_read.reader import RemoteLogReader
from rlm.remote_read.stored_records import Tier
from rlm.remote_read.tiered_log import RemoteTier, TieredLog
from rlm.remote_read.timestamps import RemoteTimestamps
from rsm.segment.batches.aborted import Isolation
from rsm.segment.batches.records import ControlType, Record
from rsm.segment.errors import CorruptError, InvalidConfigError, NotFoundError
from rsm.segment.local_segment import AbortedTransaction
from tests.remote_world import TIP, RemoteWorld, segment_of
from tests.segment_builder import (
    build_batch,
    build_control_batch,
    build_legacy_message,
    build_segment,
    records,
)

BASE_MS = 1_700_000_000_000


class MemoryLocalLog:
    """The broker's log [start, end), one record per offset; trims itself on request."""

    def __init__(self, start_offset: int, end_offset: int) -> None:
        self.start = start_offset
        self.end = end_offset
        self.trim_at: tuple[int, int] | None = None
        self.on_trim: Callable[[], object] = lambda: None

    def start_offset(self) -> int:
        return self.start

    def offset_since(self, timestamp_ms: int) -> int | None:
        found = max(timestamp_ms - BASE_MS, self.start)
        return found if found < self.end else None

    def records(self, from_offset: int, end_offset: int) -> Iterator[Sequence[Record]]:
        for offset in range(from_offset, min(end_offset, self.end), 10):
            if self.trim_at is not None and offset >= self.trim_at[0]:
                self.start, self.trim_at = self.trim_at[1], None
                self.on_trim()
            if offset < self.start:
                raise NotFoundError("the broker no longer has the offset", offset=offset)
            yield records(min(10, end_offset - offset), base_offset=offset)


def tiered(
    world: RemoteWorld,
    local: MemoryLocalLog,
    *,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    with_store: bool = True,
) -> TieredLog:
    reader: RemoteLogReader = world.reader()
    remote = RemoteTier(
        storage=world.storage,
        reader=reader,
        timestamps=RemoteTimestamps(world.metadata, reader),
    )
    return TieredLog(
        TIP,
        metadata=world.metadata,
        remote=remote if with_store else None,
        local=local,
        isolation=isolation,
    )


def read(log: TieredLog, begin: int, end: int) -> list[tuple[int, Tier]]:
    return [(r.offset, found.tier) for found in log.read(begin, end) for r in found.records]


def test_read_when_across_the_seam_then_every_record_once_in_order(world: RemoteWorld) -> None:
    """Scenario 41: from remote to local, every record once, in order."""
    world.claim()
    for base in (0, 100):
        world.store(segment_of(base, value_bytes=100))
    log = tiered(world, MemoryLocalLog(150, 300))

    found = [record for part in log.read(0, 300) for record in part.records]

    assert found == [*records(300)]
    assert [t for _, t in read(log, 195, 205)] == [Tier.REMOTE] * 5 + [Tier.LOCAL] * 5


def test_read_when_bounds_are_inside_batches_then_exactly_those(world: RemoteWorld) -> None:
    world.claim()
    world.store(segment_of(0))

    found = read(tiered(world, MemoryLocalLog(100, 100)), 13, 37)

    assert [offset for offset, _ in found] == list(range(13, 37))


def test_read_when_broker_trims_meanwhile_then_continues_in_the_store(world: RemoteWorld) -> None:
    """Scenario 111: an offset that the broker no longer has is looked up again, never skipped."""
    world.claim()
    world.store(segment_of(0))
    local = MemoryLocalLog(100, 400)
    local.trim_at = (150, 200)
    local.on_trim = lambda: world.store(segment_of(100))

    found = read(tiered(world, local), 0, 400)

    assert [offset for offset, _ in found] == list(range(400))
    assert found[149:151] == [(149, Tier.LOCAL), (150, Tier.REMOTE)]


def test_read_when_in_a_hole_of_both_tiers_then_error_names_it(world: RemoteWorld) -> None:
    """Scenario 63: the error for offsets that neither tier has comes after all earlier records."""
    world.claim()
    world.store(segment_of(0))
    world.store(segment_of(200))
    parts = tiered(world, MemoryLocalLog(300, 400)).read(0, 400)
    found: list[int] = []

    with pytest.raises(NotFoundError, match="hole") as caught:
        found.extend(record.offset for part in parts for record in part.records)

    assert found == list(range(100))
    assert (caught.value.context["offset"], caught.value.context["until_offset"]) == (100, 200)


def test_read_when_hole_is_still_local_then_read_from_the_broker(world: RemoteWorld) -> None:
    """Scenario 105: if copies finish out of order, the local log has the missing records."""
    world.claim()
    world.store(segment_of(0))
    world.store(segment_of(200))

    found = read(tiered(world, MemoryLocalLog(50, 400)), 0, 400)

    assert [offset for offset, _ in found] == list(range(400))


def test_read_when_no_store_is_configured_and_not_needed_then_local_only(
    world: RemoteWorld,
) -> None:
    world.claim()
    world.store(segment_of(0))

    found = read(tiered(world, MemoryLocalLog(50, 120), with_store=False), 50, 120)

    assert {tier for _, tier in found} == {Tier.LOCAL}


def test_read_when_no_store_is_configured_and_needed_then_names_the_setting(
    world: RemoteWorld,
) -> None:
    world.claim()
    world.store(segment_of(0))

    with pytest.raises(InvalidConfigError, match=r"rsm\.config\.storage"):
        read(tiered(world, MemoryLocalLog(50, 120), with_store=False), 0, 120)


def test_read_when_local_log_is_empty_then_all_from_the_store(world: RemoteWorld) -> None:
    """Scenario 112: with an empty local log, the read ends at the stored end."""
    world.claim()
    world.store(segment_of(0))

    found = read(tiered(world, MemoryLocalLog(100, 100)), 0, 100)

    assert found == [(offset, Tier.REMOTE) for offset in range(100)]


def test_read_when_control_batches_then_never_shown(world: RemoteWorld) -> None:
    world.claim()
    batches = [
        build_batch(records(5), producer_id=7, is_transactional=True),
        build_control_batch(5, ControlType.COMMIT, producer_id=7),
        build_batch(records(4, base_offset=6)),
    ]
    world.store(build_segment(batches))

    found = read(tiered(world, MemoryLocalLog(10, 10)), 0, 10)

    assert [offset for offset, _ in found] == [0, 1, 2, 3, 4, 6, 7, 8, 9]


ABORTED = AbortedTransaction(producer_id=7, first_offset=5, last_offset=30, last_stable_offset=5)


def store_transactions(world: RemoteWorld) -> None:
    """Store a segment in which producer 7 aborts 5-14, by a marker in the next segment.

    Producer 8 commits, and producer 9 is not transactional.
    """
    world.claim()
    batches = [
        build_batch(records(5), producer_id=7, is_transactional=True),
        build_batch(records(10, base_offset=5), producer_id=7, is_transactional=True),
        build_batch(records(5, base_offset=15), producer_id=8, is_transactional=True),
        build_batch(records(5, base_offset=20), producer_id=9),
    ]
    world.store(build_segment(batches), aborted=[ABORTED])


def test_read_when_committed_and_abort_lies_after_the_segment_then_left_out(
    world: RemoteWorld,
) -> None:
    """Scenarios 50 and 51, R19: aborted records are omitted, wherever their marker is."""
    store_transactions(world)
    log = tiered(world, MemoryLocalLog(25, 25), isolation=Isolation.READ_COMMITTED)

    found = read(log, 0, 25)

    assert [offset for offset, _ in found] == [*range(5), *range(15, 25)]


def test_read_when_uncommitted_then_aborted_records_too(world: RemoteWorld) -> None:
    store_transactions(world)

    found = read(tiered(world, MemoryLocalLog(25, 25)), 0, 25)

    assert [offset for offset, _ in found] == list(range(25))


def test_read_when_committed_and_no_transaction_index_then_none_aborted(
    world: RemoteWorld,
) -> None:
    """Scenarios 16 and 53: transactional data without a transaction index is committed data."""
    world.claim()
    world.store(build_segment([build_batch(records(10), producer_id=7, is_transactional=True)]))
    log = tiered(world, MemoryLocalLog(10, 10), isolation=Isolation.READ_COMMITTED)

    assert [offset for offset, _ in read(log, 0, 10)] == list(range(10))


def test_read_when_old_message_formats_then_their_records(world: RemoteWorld) -> None:
    """Scenario 65."""
    world.claim()
    batches = [
        build_legacy_message(0, b"zero", magic=0),
        build_legacy_message(1, b"one", magic=1),
        build_batch(records(8, base_offset=2)),
    ]
    world.store(build_segment(batches))

    found = read(tiered(world, MemoryLocalLog(10, 10)), 1, 10)

    assert [offset for offset, _ in found] == list(range(1, 10))


def test_read_when_stored_object_is_gone_then_error_though_broker_has_the_rest(
    world: RemoteWorld,
) -> None:
    """Scenario 63: a missing object is an error, even if the local log has later records."""
    world.claim()
    gone = world.store(segment_of(0))
    world.objects.delete(gone.objects[0].key)

    with pytest.raises(NotFoundError):
        read(tiered(world, MemoryLocalLog(50, 200)), 0, 200)


def test_read_when_bit_was_flipped_then_corrupt(world: RemoteWorld) -> None:
    """Scenario 62."""
    world.claim()
    stored = world.store(segment_of(0))
    key = stored.objects[0].key
    world.rewrite(key, segment_of(0).log[:-1] + b"\x01")

    with pytest.raises(CorruptError):
        read(tiered(world, MemoryLocalLog(100, 100)), 0, 100)


@pytest.mark.parametrize(
    ("since_ms", "offset"), [(0, 0), (BASE_MS + 150, 150), (BASE_MS + 299, 299)]
)
def test_offset_since_when_in_either_tier_then_the_first(
    world: RemoteWorld, since_ms: int, offset: int
) -> None:
    """Scenario 42: timestamps are answered over both tiers."""
    world.claim()
    for base in (0, 100):
        world.store(segment_of(base))

    assert tiered(world, MemoryLocalLog(180, 300)).offset_since(since_ms) == offset


def test_offset_since_when_all_are_older_then_none(world: RemoteWorld) -> None:
    """Scenario 42: after the last record there is none."""
    world.claim()
    world.store(segment_of(0))

    assert tiered(world, MemoryLocalLog(50, 100)).offset_since(BASE_MS + 100) is None


def test_offset_since_when_older_data_is_in_an_unknown_store_then_error(
    world: RemoteWorld,
) -> None:
    world.claim()
    world.store(segment_of(0))

    with pytest.raises(InvalidConfigError):
        tiered(world, MemoryLocalLog(50, 100), with_store=False).offset_since(BASE_MS)


def test_start_offset_when_trimmed_then_the_stores(world: RemoteWorld) -> None:
    world.claim()
    world.store(segment_of(0))

    assert tiered(world, MemoryLocalLog(90, 100)).start_offset() == 0


def test_read_when_a_gap_is_recorded_then_stepped_over_with_a_warning(
    world: RemoteWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """R6, scenario 83: the records on both sides of the gap are read, once and in order."""
    world.claim()
    for base in (0, 200):
        world.store(segment_of(base))
    world.record_gap(100, 200)

    found = read(tiered(world, MemoryLocalLog(300, 350)), 0, 350)

    assert [offset for offset, _ in found] == [*range(100), *range(200, 350)]
    assert "skipped a recorded gap: neither tier has its records" in caplog.text
    assert "start_offset=100 end_offset=200" in caplog.text


def test_read_when_a_gap_ends_where_the_broker_begins_then_continues_there(
    world: RemoteWorld,
) -> None:
    """R6, scenario 83."""
    world.claim()
    world.store(segment_of(0))
    world.record_gap(100, 150)

    found = read(tiered(world, MemoryLocalLog(150, 200)), 90, 200)

    assert [offset for offset, _ in found] == [*range(90, 100), *range(150, 200)]


def test_read_when_the_broker_still_has_what_a_gap_was_recorded_for_then_reads_it(
    world: RemoteWorld,
) -> None:
    """The gap is recorded before the records are shed, so they may still exist."""
    world.claim()
    world.store(segment_of(0))
    world.record_gap(100, 150)

    found = read(tiered(world, MemoryLocalLog(50, 200)), 0, 200)

    assert [offset for offset, _ in found] == list(range(200))


def test_read_when_a_gap_is_made_meanwhile_then_stepped_over(world: RemoteWorld) -> None:
    world.claim()
    local = MemoryLocalLog(0, 200)
    local.trim_at, local.on_trim = (100, 150), lambda: world.record_gap(100, 150)

    found = read(tiered(world, local), 0, 200)

    assert [offset for offset, _ in found] == [*range(100), *range(150, 200)]
