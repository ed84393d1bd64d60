"""R23: a segment joined from parts of several files equals the segment of a single copy."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rlm.facts.local_log import CommittedTail, LogPosition
from rlm.source.log_file import LogFile
from rlm.source.log_part import JoinedParts
from rlm.source.log_source import OpenPart
from rlm.source.logdir import LogDirSource
from rsm.segment.errors import NotFoundError, RetriableError
from rsm.segment.local_segment import AbortedTransaction
from rsm.segment.ranges import OffsetRange
from tests.log_dir_builder import (
    EPOCH_ZERO,
    ManualClock,
    make_written_partition,
    segment_file,
    topic_id_partition,
)
from tests.segment_builder import build_batches, build_segment

ORDERS = topic_id_partition()
BATCHES = [build_batches(10, base_offset=100 * number, value_bytes=200) for number in range(3)]
ABORTED = [
    AbortedTransaction(producer_id=1, first_offset=130, last_offset=140, last_stable_offset=125),
    AbortedTransaction(producer_id=2, first_offset=95, last_offset=160, last_stable_offset=150),
    AbortedTransaction(producer_id=3, first_offset=170, last_offset=190, last_stable_offset=205),
]
SEGMENTS = [
    build_segment(batches, aborted=ABORTED if number == 1 else ())
    for number, batches in enumerate(BATCHES)
]
ALL = [batch for batches in BATCHES for batch in batches]
BATCH_BYTES = len(ALL[0])
NO_LIMIT = 1 << 40


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make_written_partition(tmp_path / "log", ORDERS, SEGMENTS)


@pytest.fixture
def source(directory: Path) -> LogDirSource:
    return LogDirSource([directory.parent], clock=ManualClock(), chunk_bytes=1000)


def joined(
    source: LogDirSource, start: int, ends: Sequence[int], *, max_bytes: int = NO_LIMIT
) -> tuple[JoinedParts, bytes, list[tuple[int, int, int]]]:
    """Open all parts up to each end; return the joined segment, and their files and entries."""
    position, content, entries = LogPosition(offset=start), b"", []
    parts: JoinedParts | None = None
    for end in ends:
        while position.offset < end:
            with source.open_part(ORDERS, position, end, EPOCH_ZERO, max_bytes=max_bytes) as part:
                parts = parts or JoinedParts(part.offsets.start_offset)
                content += b"".join(bytes(chunk) for chunk in part.log.chunks())
                parts.append(part)
                part.verify_unchanged()
            entries.append((part.file_base_offset, part.first_entry_id, part.following.entry_id))
            position = part.following
    assert parts is not None
    assert parts.size_bytes == len(content)
    return parts, content, entries


@pytest.mark.parametrize("max_bytes", [1, BATCH_BYTES, 3 * BATCH_BYTES + 1, NO_LIMIT])
@pytest.mark.parametrize("ends", [(300,), (50, 120, 300), (200, 210, 220, 300), (110, 300)])
def test_parts_when_joined_across_files_then_as_one_segment_of_all_their_batches(
    source: LogDirSource, ends: tuple[int, ...], max_bytes: int
) -> None:
    whole = build_segment(ALL)

    parts, content, _ = joined(source, 0, [*ends], max_bytes=max_bytes)
    companions = parts.companions(EPOCH_ZERO)

    assert (parts.offsets, content) == (whole.offsets, whole.log)
    assert companions.offset_index == whole.offset_index
    assert companions.time_index == whole.time_index
    assert companions.producer_snapshot is None
    assert parts.max_timestamp_ms == 1_700_000_000_299


@pytest.mark.parametrize(("start", "end"), [(100, 200), (100, 150), (120, 190), (135, 145)])
@pytest.mark.parametrize("max_bytes", [1, 4 * BATCH_BYTES, NO_LIMIT])
def test_parts_when_of_one_file_then_companions_equal_those_of_one_copy(
    source: LogDirSource, start: int, end: int, max_bytes: int
) -> None:
    tail = CommittedTail(
        file_base_offset=100, offsets=OffsetRange(start_offset=start, end_offset=end), size_bytes=1
    )
    with source.open_segment(ORDERS, tail, EPOCH_ZERO, 300) as opened:
        once = opened.data
        held = b"".join(bytes(chunk) for chunk in once.log.chunks())

    parts, content, _ = joined(source, start, [once.offsets.end_offset], max_bytes=max_bytes)

    assert (parts.offsets, content) == (once.offsets, held)
    assert parts.companions(EPOCH_ZERO) == once.companions
    assert parts.max_timestamp_ms == opened.max_timestamp_ms


def test_parts_when_a_later_file_has_aborted_transactions_then_each_once_by_its_marker(
    source: LogDirSource,
) -> None:
    parts, _, _ = joined(source, 0, [300], max_bytes=2 * BATCH_BYTES)

    companions = parts.companions(EPOCH_ZERO)

    assert companions.aborted_transactions == tuple(ABORTED)
    assert companions.transaction_index == SEGMENTS[1].transaction_index


def test_parts_when_no_file_has_a_transaction_index_then_none(source: LogDirSource) -> None:
    parts, _, _ = joined(source, 0, [90])

    assert parts.companions(EPOCH_ZERO).transaction_index is None


def test_parts_when_continued_then_entries_count_on_in_each_file(source: LogDirSource) -> None:
    _, _, entries = joined(source, 30, [50, 70, 120, 300])

    assert entries == [
        *[(0, 3, 5), (0, 5, 7), (0, 7, 10)],
        *[(100, 0, 2), (100, 2, 10), (200, 0, 10)],
    ]


def test_part_when_its_position_is_of_another_file_then_searched_from_the_start(
    source: LogDirSource,
) -> None:
    stale = LogPosition(offset=130, file_base_offset=0, position=77, entry_id=5)

    with source.open_part(ORDERS, stale, 300, EPOCH_ZERO, max_bytes=1) as part:
        assert (part.offsets, part.first_entry_id) == (
            OffsetRange(start_offset=130, end_offset=140),
            3,
        )


def test_part_when_the_offset_is_inside_a_batch_then_begins_with_it(source: LogDirSource) -> None:
    with source.open_part(
        ORDERS, LogPosition(offset=135), 145, EPOCH_ZERO, max_bytes=NO_LIMIT
    ) as part:
        assert part.offsets == OffsetRange(start_offset=130, end_offset=140)


def test_part_when_compaction_removed_the_end_of_a_file_then_reaches_the_next_one(
    directory: Path, source: LogDirSource
) -> None:
    segment_file(directory, 100, "log").write_bytes(b"".join(BATCHES[1][:8]))

    parts, content, entries = joined(source, 100, [180, 300])

    assert parts.offsets == OffsetRange(start_offset=100, end_offset=300)
    assert content == b"".join([*BATCHES[1][:8], *BATCHES[2]])
    assert entries == [(100, 0, 8), (100, 8, 8), (200, 0, 10)]


def test_part_when_its_offset_is_deleted_then_not_found(
    directory: Path, source: LogDirSource
) -> None:
    segment_file(directory, 0, "log").unlink()

    with (
        pytest.raises(NotFoundError, match="deleted"),
        source.open_part(ORDERS, LogPosition(offset=5), 300, EPOCH_ZERO, max_bytes=1),
    ):
        pass


@pytest.mark.parametrize("begin", [250, 300])
def test_part_when_no_whole_batch_is_committed_then_retriable(
    source: LogDirSource, begin: int
) -> None:
    with (
        pytest.raises(RetriableError, match="no whole batch"),
        source.open_part(ORDERS, LogPosition(offset=begin), begin + 5, EPOCH_ZERO, max_bytes=1),
    ):
        pass


def test_part_when_its_file_is_cut_meanwhile_then_retriable(
    directory: Path, source: LogDirSource
) -> None:
    begin = LogPosition(offset=200)
    with source.open_part(ORDERS, begin, 300, EPOCH_ZERO, max_bytes=NO_LIMIT) as part:
        with segment_file(directory, 200, "log").open("r+b") as log:
            log.truncate(5 * BATCH_BYTES)
        with pytest.raises(RetriableError, match="was truncated"):
            part.verify_unchanged()


def test_part_when_its_position_is_beyond_the_file_then_retriable(source: LogDirSource) -> None:
    """The file was truncated since its listing, or is another file."""
    begin = replace(LogPosition(offset=290), file_base_offset=200, position=1 << 20)

    with (
        pytest.raises(RetriableError, match="changed"),
        source.open_part(ORDERS, begin, 300, EPOCH_ZERO, max_bytes=1),
    ):
        pass


def read_headers(part: OpenPart) -> None:
    assert list(part.headers())


def read_extents(part: OpenPart) -> None:
    assert isinstance(part.log, LogFile)
    assert list(part.log.batches())


def verify(part: OpenPart) -> None:
    part.verify_unchanged()


@pytest.mark.parametrize("read", [read_headers, read_extents, verify])
def test_part_when_its_disk_fails_then_retriable(
    directory: Path, source: LogDirSource, read: Callable[[OpenPart], None]
) -> None:
    """The log file's descriptor is closed meanwhile, so each system call on it fails."""
    begin = LogPosition(offset=0)
    with source.open_part(ORDERS, begin, 100, EPOCH_ZERO, max_bytes=NO_LIMIT) as part:
        assert isinstance(part.log, LogFile)
        descriptor = part.log.descriptor
        read(part)
        os.close(descriptor)
        try:
            with pytest.raises(RetriableError, match="cannot read the segment"):
                read(part)
        finally:
            spare = os.open(directory, os.O_RDONLY)
            if spare != descriptor:
                os.dup2(spare, descriptor)
                os.close(spare)
