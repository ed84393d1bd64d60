"""R10, scenario 20: parts of a log file, opened as segments of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.facts.local_log import CommittedTail, LocalSegment, RolledSegment
from rlm.source.logdir import LogDirSource
from rsm.segment.errors import CorruptError, RetriableError
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
BATCHES = [build_batches(10, base_offset=100 * number) for number in range(3)]
SEGMENTS = [build_segment(batches) for batches in BATCHES]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make_written_partition(tmp_path / "log", ORDERS, SEGMENTS)


@pytest.fixture
def source(directory: Path) -> LogDirSource:
    return LogDirSource([directory.parent], clock=ManualClock(), chunk_bytes=1000)


def part(source: LogDirSource, start: int, end: int, *, file: int = 200) -> CommittedTail:
    log = source.local_log(ORDERS)
    sizes = {s.offsets.start_offset: s.size_bytes for s in log.rolled}
    return CommittedTail(
        file_base_offset=file,
        offsets=OffsetRange(start_offset=start, end_offset=end),
        size_bytes=sizes.get(file, log.active_size_bytes),
    )


def rest(source: LogDirSource, start: int, *, file: int) -> RolledSegment:
    rolled = source.local_log(ORDERS).rolled
    (found,) = [each for each in rolled if each.file_base_offset == file]
    return found.rest(start)


def bytes_of(number: int, start: int, end: int) -> bytes:
    """Return the file's batches that overlap a range, and end in it."""
    first = 100 * number
    return b"".join(BATCHES[number][(start - first) // 10 : (end - first) // 10])


def content(source: LogDirSource, segment: LocalSegment) -> tuple[tuple[int, int], bytes]:
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, 300) as opened:
        held = b"".join(bytes(chunk) for chunk in opened.data.log.chunks())
        opened.verify_unchanged()
        assert opened.data.log.length_bytes == len(held)
    offsets = opened.data.offsets
    return (offsets.start_offset, offsets.end_offset), held


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (200, 300, (200, 300)),
        (200, 250, (200, 250)),
        (230, 250, (230, 250)),
        (200, 255, (200, 250)),
        (235, 255, (230, 250)),
    ],
)
def test_active_part_then_whole_batches_below_its_end(
    source: LogDirSource, start: int, end: int, found: tuple[int, int]
) -> None:
    """R10: byte for byte the file's range; a batch that reaches above the end is left out."""
    offsets, held = content(source, part(source, start, end))

    assert offsets == found
    assert held == bytes_of(2, *found)


@pytest.mark.parametrize(
    ("start", "found"), [(110, (110, 200)), (150, (150, 200)), (155, (150, 200))]
)
def test_rest_of_a_rolled_file_then_from_the_batch_that_holds_its_start(
    source: LogDirSource, start: int, found: tuple[int, int]
) -> None:
    offsets, held = content(source, rest(source, start, file=100))

    assert offsets == found
    assert held == bytes_of(1, *found)


def test_active_part_when_appended_to_meanwhile_then_only_what_was_there(
    directory: Path, source: LogDirSource
) -> None:
    """The source reads nothing above the end, so a torn batch there does no harm."""
    segment = part(source, 200, 300)
    with segment_file(directory, 200, "log").open("ab") as log:
        log.write(b"\0" * 7)

    with source.open_segment(ORDERS, segment, EPOCH_ZERO, 300) as opened:
        with segment_file(directory, 200, "log").open("ab") as log:
            log.write(b"\0" * 100)
        held = b"".join(bytes(chunk) for chunk in opened.data.log.chunks())
        opened.verify_unchanged()

    assert held == SEGMENTS[2].log


def test_active_part_when_its_file_rolls_meanwhile_then_unchanged(
    directory: Path, source: LogDirSource
) -> None:
    with source.open_segment(ORDERS, part(source, 200, 300), EPOCH_ZERO, 300) as opened:
        segment_file(directory, 300, "log").touch()
        opened.verify_unchanged()

    assert opened.data.offsets == SEGMENTS[2].offsets


def test_active_part_when_the_file_is_cut_meanwhile_then_retriable(
    directory: Path, source: LogDirSource
) -> None:
    """Scenario 9: only a follower truncates its log, so nothing of this copy may be kept."""
    with source.open_segment(ORDERS, part(source, 200, 300), EPOCH_ZERO, 300) as opened:
        with segment_file(directory, 200, "log").open("r+b") as log:
            log.truncate(1500)

        with pytest.raises(RetriableError, match="truncated while it was read"):
            opened.verify_unchanged()


def test_active_part_when_another_file_begins_inside_it_then_retriable(
    directory: Path, source: LogDirSource
) -> None:
    with source.open_segment(ORDERS, part(source, 200, 300), EPOCH_ZERO, 300) as opened:
        segment_file(directory, 250, "log").touch()

        with pytest.raises(RetriableError, match="listed end offset"):
            opened.verify_unchanged()


def test_active_part_when_no_whole_batch_is_below_its_end_then_retriable(
    source: LogDirSource,
) -> None:
    with (
        pytest.raises(RetriableError, match="no whole batch"),
        source.open_segment(ORDERS, part(source, 200, 205), EPOCH_ZERO, 300),
    ):
        pass


def test_active_part_when_above_the_last_stable_offset_then_retriable(
    source: LogDirSource,
) -> None:
    """Scenario 2."""
    with (
        pytest.raises(RetriableError, match="last stable offset"),
        source.open_segment(ORDERS, part(source, 200, 300), EPOCH_ZERO, 290),
    ):
        pass


def test_active_part_when_a_bit_is_flipped_then_corrupt(
    directory: Path, source: LogDirSource
) -> None:
    path = segment_file(directory, 200, "log")
    held = bytearray(path.read_bytes())
    held[300] ^= 1
    path.write_bytes(held)

    with (
        pytest.raises(CorruptError),
        source.open_segment(ORDERS, part(source, 200, 300), EPOCH_ZERO, 300) as opened,
    ):
        list(opened.data.log.chunks())


def test_part_then_its_indexes_are_of_its_own_positions(source: LogDirSource) -> None:
    """R10: rlm builds the indexes, because the broker's positions count from the file's start."""
    with source.open_segment(ORDERS, part(source, 230, 300), EPOCH_ZERO, 300) as opened:
        parts = opened.data.companions
        walked = list(opened.data.batches()) if opened.data.batches else []

    built = build_segment(BATCHES[2][3:], base_offset=230)
    assert (parts.offset_index, parts.time_index) == (built.offset_index, built.time_index)
    assert [base for base, _ in walked] == list(range(230, 300, 10))
    assert parts.producer_snapshot is None
