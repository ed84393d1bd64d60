from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlm.facts.local_log import LogFileSize, RolledSegment
from rlm.source.logdir import LogDirSource
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, NotFoundError, RetriableError
from rsm.segment.ranges import OffsetRange
from tests.log_dir_builder import (
    ManualClock,
    make_log_dir,
    make_partition,
    put_aside,
    segment_file,
    topic_id_partition,
    write_checkpoint,
    write_segments,
)
from tests.segment_builder import BuiltSegment, build_batches, build_segment

ORDERS = topic_id_partition()
FIRST_TIMESTAMP_MS = 1_700_000_000_000


def segments_of(count: int) -> list[BuiltSegment]:
    """Return segments of 100 offsets each."""
    return [build_segment(build_batches(10, base_offset=100 * n)) for n in range(count)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make_partition(make_log_dir(tmp_path / "log"), ORDERS)


@pytest.fixture
def source(tmp_path: Path) -> LogDirSource:
    return LogDirSource([tmp_path / "log"], clock=ManualClock())


def test_local_log_of_three_rolled_and_one_active_then_active_is_apart(
    directory: Path, source: LogDirSource
) -> None:
    """Scenario 1: exactly the rolled ones, in order, each ending where the next begins."""
    built = segments_of(4)
    write_segments(directory, built)
    for n in range(3):
        os.utime(directory / f"{100 * n:020d}.log", ns=(0, 10**15 + n))
        os.utime(directory / f"{100 * n:020d}.timeindex", ns=(0, 10**15 + 5_000_000_000))

    log = source.local_log(ORDERS)

    assert log.rolled == tuple(
        RolledSegment(
            file_base_offset=100 * n,
            offsets=OffsetRange(start_offset=100 * n, end_offset=100 * n + 100),
            size_bytes=len(built[n].log),
            max_timestamp_ms=FIRST_TIMESTAMP_MS + 100 * n + 99,
            rolled_ms=10**9 + 5_000,
        )
        for n in range(3)
    )
    assert (log.active_base_offset, log.active_size_bytes) == (300, len(built[3].log))
    assert log.checkpoint == Lineage.of((0, 0))


def test_local_log_when_segments_are_put_aside_then_ignored(
    directory: Path, source: LogDirSource
) -> None:
    """D9: files that the broker deletes, cleans or swaps in are not part of the log."""
    write_segments(directory, segments_of(3))
    put_aside(directory, 0)
    for suffix in (".log.cleaned", ".log.swap", ".index.cleaned"):
        (directory / f"{50:020d}{suffix}").write_bytes(b"x")

    log = source.local_log(ORDERS)

    assert [segment.offsets.start_offset for segment in log.rolled] == [100]


@pytest.mark.parametrize("content", [None, b"", b"\x00" * 24, b"\x01" * 13, b"\xff" * 12])
def test_local_log_when_time_index_has_no_last_entry_then_time_of_file(
    directory: Path, source: LogDirSource, content: bytes | None
) -> None:
    """R21: where there is no timestamp, Kafka uses the time of the file."""
    write_segments(directory, segments_of(2))
    time_index = segment_file(directory, 0, "timeindex")
    if content is None:
        time_index.unlink()
    else:
        time_index.write_bytes(content)
    os.utime(segment_file(directory, 0, "log"), ns=(0, 1_234_567_890_123_456_789))

    log = source.local_log(ORDERS)

    assert log.rolled[0].max_timestamp_ms == 1_234_567_890_123


def test_local_log_when_asked_again_then_time_index_is_not_read_again(
    directory: Path, source: LogDirSource
) -> None:
    write_segments(directory, segments_of(3))
    before = source.local_log(ORDERS)
    segment_file(directory, 0, "timeindex").unlink()

    after = source.local_log(ORDERS)

    assert after == before


def test_local_log_when_file_was_replaced_then_read_again(
    directory: Path, source: LogDirSource
) -> None:
    write_segments(directory, segments_of(2))
    source.local_log(ORDERS)
    other = build_segment(build_batches(9, base_offset=0, records_per_batch=11))
    segment_file(directory, 0, "log").unlink()
    segment_file(directory, 0, "log").write_bytes(other.log)
    segment_file(directory, 0, "timeindex").write_bytes(other.time_index)

    log = source.local_log(ORDERS)

    assert log.rolled[0].max_timestamp_ms == FIRST_TIMESTAMP_MS + 98


def test_local_log_when_leader_epoch_is_new_then_checkpoint_as_it_is(
    directory: Path, source: LogDirSource
) -> None:
    write_segments(directory, segments_of(2))
    write_checkpoint(directory, Lineage.of((0, 0), (3, 150), (4, 200)))

    assert source.local_log(ORDERS).checkpoint == Lineage.of((0, 0), (3, 150), (4, 200))


def test_local_log_when_nobody_led_it_yet_then_empty_lineage(
    directory: Path, source: LogDirSource
) -> None:
    write_segments(directory, segments_of(1))
    (directory / "leader-epoch-checkpoint").write_bytes(b"")

    assert source.local_log(ORDERS).checkpoint == Lineage()


def test_local_log_when_checkpoint_is_missing_after_rolled_segments_then_retriable(
    directory: Path, source: LogDirSource
) -> None:
    write_segments(directory, segments_of(2))
    (directory / "leader-epoch-checkpoint").unlink()

    with pytest.raises(RetriableError, match="leader-epoch-checkpoint"):
        source.local_log(ORDERS)


def test_local_log_when_checkpoint_is_garbage_then_corrupt(
    directory: Path, source: LogDirSource
) -> None:
    write_segments(directory, segments_of(2))
    (directory / "leader-epoch-checkpoint").write_bytes(b"0\n2\n0 0\n")

    with pytest.raises(CorruptError):
        source.local_log(ORDERS)


@pytest.mark.usefixtures("directory")
def test_local_log_when_directory_holds_no_log_then_retriable(
    source: LogDirSource,
) -> None:
    with pytest.raises(RetriableError, match="cannot list the log"):
        source.local_log(ORDERS)


@pytest.mark.usefixtures("directory")
def test_local_log_when_partition_is_not_here_then_not_found(
    source: LogDirSource,
) -> None:
    with pytest.raises(NotFoundError):
        source.local_log(topic_id_partition("payments"))


def test_partitions_when_one_is_gone_then_its_listing_is_forgotten(
    directory: Path, source: LogDirSource
) -> None:
    write_segments(directory, segments_of(2))
    source.local_log(ORDERS)
    directory.rename(directory.with_name("orders-0.0123456789abcdef0123456789abcdef-delete"))

    assert source.partitions() == ()
    assert source._listed == {}


@pytest.mark.parametrize(
    ("offset", "bases"),
    [(0, (0, 100, 200)), (99, (0, 100, 200)), (100, (100, 200)), (250, (200,)), (9999, (200,))],
)
def test_file_sizes_when_from_an_offset_then_its_file_and_all_later_ones(
    offset: int, bases: tuple[int, ...], directory: Path, source: LogDirSource
) -> None:
    built = segments_of(3)
    write_segments(directory, built)

    assert source.file_sizes(ORDERS, offset) == tuple(
        LogFileSize(base_offset=base, size_bytes=len(built[base // 100].log)) for base in bases
    )


def test_file_sizes_when_all_files_begin_above_the_offset_then_all(
    directory: Path, source: LogDirSource
) -> None:
    write_segments(directory, segments_of(3))
    put_aside(directory, 0)

    assert [each.base_offset for each in source.file_sizes(ORDERS, 50)] == [100, 200]


def test_file_sizes_when_an_earlier_file_has_no_attributes_then_not_looked_at(
    directory: Path, source: LogDirSource
) -> None:
    write_segments(directory, segments_of(3))
    earlier = directory / f"{0:020d}.log"
    earlier.unlink()
    earlier.symlink_to("nothing")

    (active,) = source.file_sizes(ORDERS, 200)

    assert active.base_offset == 200


@pytest.mark.usefixtures("directory")
def test_file_sizes_when_there_is_no_log_then_retriable(source: LogDirSource) -> None:
    with pytest.raises(RetriableError, match="cannot list the log"):
        source.file_sizes(ORDERS, 0)
