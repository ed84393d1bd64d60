from __future__ import annotations

import os
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import pytest

from rlm.source.log_source import OpenSegment
from rlm.source.logdir import LogDirSource
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import TransactionIndex
from rsm.segment.local_segment import AbortedTransaction, SegmentCompanions
from tests.log_dir_builder import (
    EPOCH_ZERO,
    ManualClock,
    make_written_partition,
    producer_snapshot,
    segment_file,
    topic_id_partition,
)
from tests.segment_builder import build_batch, build_batches, build_segment, record, records

ORDERS = topic_id_partition()
SEGMENTS = [build_segment(build_batches(20, base_offset=200 * n)) for n in range(4)]
BUILT = SEGMENTS[1]  # the one that the tests open: offsets [200, 400)
LSO = 800


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make_written_partition(tmp_path / "log", ORDERS, SEGMENTS)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def source(directory: Path, clock: ManualClock) -> LogDirSource:
    return LogDirSource([directory.parent], clock=clock)


def open_second(
    source: LogDirSource, *, lineage: Lineage = EPOCH_ZERO
) -> AbstractContextManager[OpenSegment]:
    segment = next(
        each for each in source.local_log(ORDERS).rolled if each.offsets.start_offset == 200
    )
    return source.open_segment(ORDERS, segment, lineage, LSO)


def companions_of(source: LogDirSource) -> SegmentCompanions:
    with open_second(source) as opened:
        return opened.data.companions


def aborted(producer_id: int, first: int, last: int, stable: int) -> AbortedTransaction:
    return AbortedTransaction(
        producer_id=producer_id, first_offset=first, last_offset=last, last_stable_offset=stable
    )


def write_transactions(directory: Path, base_offset: int, *entries: AbortedTransaction) -> Path:
    path = segment_file(directory, base_offset, "txnindex")
    path.write_bytes(TransactionIndex(transactions=entries).to_bytes())
    return path


def test_companions_then_the_brokers_files_and_the_whole_lineage(source: LogDirSource) -> None:
    lineage = Lineage.of((0, 0), (4, 700), (6, 790))

    with open_second(source, lineage=lineage) as opened:
        companions = opened.data.companions

    assert len(companions.offset_index) > 0
    assert companions == SegmentCompanions(
        offset_index=BUILT.offset_index,
        time_index=BUILT.time_index,
        transaction_index=None,
        producer_snapshot=producer_snapshot(),
        lineage=lineage,
        aborted_transactions=(),
    )


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda data: data + b"\x00" * 10_485_760, id="preallocated"),
        pytest.param(lambda data: b"\x00" * len(data), id="zeros"),
        pytest.param(lambda data: Random(7).randbytes(len(data)), id="garbage"),
        pytest.param(lambda data: data[:-5], id="cut"),
        pytest.param(lambda data: data + data[-12:], id="entry twice"),
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda data: data[:3] + b"\x01" + data[4:], id="bit flipped at the begin"),
        pytest.param(
            lambda data: data[:-1] + bytes([data[-1] ^ 0x20]), id="bit flipped at the end"
        ),
        pytest.param(lambda _: SEGMENTS[2].time_index, id="another's"),
    ],
)
def test_companions_when_an_index_is_wrong_then_made_from_the_log(
    directory: Path, source: LogDirSource, kind: str, spoil: Callable[[bytes], bytes]
) -> None:
    """Scenario 17, D6: a wrong index is never uploaded."""
    path = segment_file(directory, 200, kind)
    path.write_bytes(spoil(path.read_bytes()))

    companions = companions_of(source)

    assert companions.offset_index == BUILT.offset_index
    assert companions.time_index == BUILT.time_index


def test_companions_when_index_files_are_missing_then_made_from_the_log(
    directory: Path, source: LogDirSource
) -> None:
    """Scenario 17."""
    segment_file(directory, 200, "index").unlink()
    segment_file(directory, 200, "timeindex").unlink()

    companions = companions_of(source)

    assert companions.offset_index == BUILT.offset_index
    assert companions.time_index == BUILT.time_index


def test_companions_when_broker_indexes_more_sparsely_then_its_files(
    directory: Path, source: LogDirSource
) -> None:
    """A correct index of another `index.interval.bytes`, or of an older broker, is kept."""
    sparse = build_segment(build_batches(20, base_offset=200), index_interval_bytes=9000)
    segment_file(directory, 200, "index").write_bytes(sparse.offset_index)
    segment_file(directory, 200, "timeindex").write_bytes(sparse.time_index)

    companions = companions_of(source)

    assert 0 < len(companions.offset_index) < len(BUILT.offset_index)
    assert companions.offset_index == sparse.offset_index
    assert companions.time_index == sparse.time_index


def test_max_timestamp_when_time_index_lost_its_end_then_the_batches_say(
    directory: Path, source: LogDirSource
) -> None:
    path = segment_file(directory, 200, "timeindex")
    path.write_bytes(path.read_bytes()[:12])

    with open_second(source) as opened:
        timestamp_ms = opened.max_timestamp_ms

    assert timestamp_ms == 1_700_000_000_399


def test_max_timestamp_when_no_record_has_one_then_time_of_file(
    directory: Path, source: LogDirSource
) -> None:
    """R21: as Kafka's LogSegment.largestTimestamp."""
    timeless = build_segment([build_batch([record(200, timestamp_ms=-1)], last_offset=399)])
    segment_file(directory, 200, "log").write_bytes(timeless.log)
    segment_file(directory, 200, "index").write_bytes(timeless.offset_index)
    segment_file(directory, 200, "timeindex").write_bytes(timeless.time_index)
    os.utime(segment_file(directory, 200, "log"), ns=(0, 1_500_000_000_123_000_000))

    with open_second(source) as opened:
        timestamp_ms = opened.max_timestamp_ms

    assert timestamp_ms == 1_500_000_000_123


def test_companions_when_batches_are_larger_than_the_window_then_indexes_agree(
    directory: Path, source: LogDirSource
) -> None:
    batches = [
        build_batch(records(1, base_offset=200, value_bytes=300_000)),
        build_batch(records(150, base_offset=201, value_bytes=1)),
        *(build_batch(records(1, base_offset=351 + n, value_bytes=4096 - n)) for n in range(49)),
    ]
    large = build_segment(batches)
    segment_file(directory, 200, "log").write_bytes(large.log)
    segment_file(directory, 200, "index").unlink()

    companions = companions_of(source)

    assert companions.offset_index == large.offset_index
    assert companions.time_index == large.time_index


def test_transactions_that_end_in_later_segments_then_gathered(
    directory: Path, source: LogDirSource
) -> None:
    """R19: all transactions that overlap the segment, wherever their markers are."""
    before = aborted(1, 150, 250, 251)
    across = aborted(2, 390, 450, 380)  # another transaction, open since 380, kept the LSO low
    late = aborted(3, 380, 610, 611)
    write_transactions(directory, 0, aborted(9, 10, 190, 191))
    own = write_transactions(directory, 200, before)
    write_transactions(directory, 400, across, aborted(4, 420, 460, 380))
    write_transactions(directory, 600, late)

    companions = companions_of(source)

    assert companions.transaction_index == own.read_bytes()
    assert companions.aborted_transactions == (before, across, late)


def test_transactions_when_last_stable_offset_passed_the_end_then_nothing_later_is_read(
    directory: Path, source: LogDirSource
) -> None:
    write_transactions(directory, 400, aborted(1, 390, 410, 411))
    segment_file(directory, 600, "txnindex").write_bytes(b"unreadable")

    companions = companions_of(source)

    assert companions.aborted_transactions == (aborted(1, 390, 410, 411),)


def test_transactions_when_the_active_index_ends_within_an_entry_then_the_whole_ones(
    directory: Path, source: LogDirSource
) -> None:
    """The broker may be writing it at this moment."""
    path = write_transactions(directory, 600, aborted(1, 390, 610, 300))
    path.write_bytes(path.read_bytes() + b"\x00\x00\x01")

    companions = companions_of(source)

    assert companions.aborted_transactions == (aborted(1, 390, 610, 300),)


@pytest.mark.parametrize("base_offset", [200, 400])
@pytest.mark.parametrize(
    "content",
    [
        b"\x00" * 33,
        struct.pack(">hqqqq", 0, 1, 200, 900, 200),
        struct.pack(">hqqqq", 0, 1, 500, 210, 200),
    ],
)
def test_transactions_when_an_index_is_wrong_then_refused(
    directory: Path, source: LogDirSource, base_offset: int, content: bytes
) -> None:
    """Scenario 17: without this index, a reader would get records of aborted transactions."""
    segment_file(directory, base_offset, "txnindex").write_bytes(content)

    with pytest.raises(CorruptError, match="txnindex"), open_second(source):
        pass


def test_transactions_when_index_is_absent_then_recorded_as_absent(source: LogDirSource) -> None:
    """Scenario 16."""
    assert companions_of(source).transaction_index is None


def test_transactions_when_index_is_empty_then_present(
    directory: Path, source: LogDirSource
) -> None:
    write_transactions(directory, 200)

    assert companions_of(source).transaction_index == b""


@pytest.mark.parametrize("content", [None, b"", producer_snapshot()[:-1], b"\x00\x01garbage"])
def test_snapshot_when_none_is_whole_then_recorded_as_absent(
    directory: Path, source: LogDirSource, clock: ManualClock, content: bytes | None
) -> None:
    """Scenario 16, R21: the broker never writes a snapshot for an older segment."""
    path = segment_file(directory, 400, "snapshot")
    path.unlink()
    if content is not None:
        path.write_bytes(content)

    companions = companions_of(source)

    assert companions.producer_snapshot is None
    assert clock.slept_ms == []


class WritingClock(ManualClock):
    """A clock at whose third sleep the broker finishes its snapshot."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def sleep_ms(self, duration_ms: int) -> None:
        super().sleep_ms(duration_ms)
        self._path.write_bytes(producer_snapshot()[: 3 * len(self.slept_ms)])
        if len(self.slept_ms) == 3:
            self._path.write_bytes(producer_snapshot())


def test_snapshot_when_the_broker_is_writing_it_then_awaited(directory: Path) -> None:
    """R21: the broker writes it in place, after it has begun the next segment."""
    segment_file(directory, 600, "log").unlink()
    snapshot_path = segment_file(directory, 400, "snapshot")
    snapshot_path.unlink()
    clock = WritingClock(snapshot_path)

    companions = companions_of(LogDirSource([directory.parent], clock=clock))

    assert companions.producer_snapshot == producer_snapshot()
    assert len(clock.slept_ms) == 3


def test_snapshot_when_it_never_comes_then_absent_in_bounded_time(
    directory: Path, source: LogDirSource, clock: ManualClock
) -> None:
    """Scenario 16."""
    segment_file(directory, 600, "log").unlink()
    segment_file(directory, 400, "snapshot").unlink()

    companions = companions_of(source)

    assert companions.producer_snapshot is None
    assert 0 < sum(clock.slept_ms) <= 200
