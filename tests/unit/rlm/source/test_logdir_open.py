from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlm.facts.local_log import RolledSegment
from rlm.source.logdir import LogDirSource
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, NotFoundError, RetriableError
from rsm.segment.local_segment import ContentSource
from tests.log_dir_builder import (
    EPOCH_ZERO,
    ManualClock,
    make_written_partition,
    put_aside,
    rewrite_keeping_times,
    segment_file,
    topic_id_partition,
)
from tests.segment_builder import build_batches, build_segment

ORDERS = topic_id_partition()
SEGMENTS = [build_segment(build_batches(10, base_offset=100 * n)) for n in range(4)]
LSO = 400


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make_written_partition(tmp_path / "log", ORDERS, SEGMENTS)


@pytest.fixture
def source(directory: Path) -> LogDirSource:
    return LogDirSource([directory.parent], clock=ManualClock(), chunk_bytes=1000)


@pytest.fixture
def log_path(directory: Path) -> Path:
    return segment_file(directory, 0, "log")


@pytest.fixture
def segment(source: LogDirSource) -> RolledSegment:
    return source.local_log(ORDERS).rolled[0]


def content_of(log: ContentSource) -> bytes:
    return b"".join(bytes(chunk) for chunk in log.chunks())


def test_chunks_of_a_rolled_segment_then_the_file_each_time(
    source: LogDirSource, segment: RolledSegment
) -> None:
    """Scenario 1: byte for byte, and again from the start for a retried upload."""
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        passes = [content_of(opened.data.log), content_of(opened.data.log)]
        opened.verify_unchanged()

    assert passes == [SEGMENTS[0].log, SEGMENTS[0].log]
    assert opened.data.log.length_bytes == len(SEGMENTS[0].log)
    assert opened.data.offsets == SEGMENTS[0].offsets


def test_open_when_compaction_took_all_batches_then_empty_and_as_long_as_ever(
    directory: Path, source: LogDirSource
) -> None:
    """A formerly compacted topic has such files."""
    for suffix in ("log", "index", "timeindex"):
        segment_file(directory, 100, suffix).write_bytes(b"")
    emptied = source.local_log(ORDERS).rolled[1]

    with source.open_segment(ORDERS, emptied, EPOCH_ZERO, LSO) as opened:
        content = content_of(opened.data.log)
        opened.verify_unchanged()

    assert (content, opened.data.offsets) == (b"", SEGMENTS[1].offsets)


def test_chunks_then_views_of_one_small_buffer(
    source: LogDirSource, segment: RolledSegment
) -> None:
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        views = list(opened.data.log.chunks())

    assert len(views) > 10
    assert {id(view.obj) for view in views} == {id(views[0].obj)}
    assert max(map(len, views)) == 1000


def test_open_segment_then_descriptor_is_closed_at_the_end(
    source: LogDirSource, segment: RolledSegment
) -> None:
    before = os.listdir("/proc/self/fd")  # noqa: PTH208

    with (
        pytest.raises(ZeroDivisionError),
        source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO),
    ):
        raise ZeroDivisionError

    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208


def test_open_when_put_aside_while_reading_then_whole_and_unchanged(
    directory: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    """Scenario 18, D9: the descriptor holds the content whatever the name becomes."""
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        chunks = opened.data.log.chunks()
        content = bytes(next(chunks))
        put_aside(directory, 0)
        content += b"".join(map(bytes, chunks))
        opened.verify_unchanged()

    assert content == SEGMENTS[0].log


def test_verify_when_removed_altogether_then_retriable(
    log_path: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        log_path.unlink()

        with pytest.raises(RetriableError, match="no longer has its name"):
            opened.verify_unchanged()


def test_verify_when_partition_directory_moved_then_retriable(
    directory: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    """Scenario 90: after a move between log dirs, the copy begins again from the new directory."""
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        directory.rename(directory.with_name("orders-0.0123456789abcdef0123456789abcdef-delete"))

        with pytest.raises(RetriableError):
            opened.verify_unchanged()


def test_verify_when_another_file_has_the_name_then_retriable(
    log_path: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        log_path.rename(log_path.with_suffix(".kept"))
        log_path.write_bytes(SEGMENTS[0].log)

        with pytest.raises(RetriableError, match="no longer has its name"):
            opened.verify_unchanged()


def test_verify_when_truncated_and_regrown_to_the_same_size_then_retriable(
    log_path: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    """R21, scenario 9: same inode, size and even bytes, but the file was written to."""
    os.utime(log_path, ns=(0, 1_600_000_000_000_000_000))
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        content_of(opened.data.log)
        with log_path.open("r+b") as file:
            file.truncate(0)
            file.write(SEGMENTS[0].log)

        with pytest.raises(RetriableError, match="written to"):
            opened.verify_unchanged()


def test_verify_when_no_longer_rolled_then_retriable(
    directory: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    """R21: a truncation made it the active segment again, and did not change its file."""
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        for base_offset in (100, 200, 300):
            put_aside(directory, base_offset)

        with pytest.raises(RetriableError, match="does not end"):
            opened.verify_unchanged()


def test_chunks_when_cut_while_reading_then_retriable(
    log_path: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    """Scenario 9: the copy discards what it read."""
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        chunks = opened.data.log.chunks()
        next(chunks)
        os.truncate(log_path, 2000)

        with pytest.raises(RetriableError, match="was truncated"):
            list(chunks)


def test_chunks_when_written_to_while_reading_then_last_chunk_is_withheld(
    log_path: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    os.utime(log_path, ns=(0, 1_600_000_000_000_000_000))
    received: list[int] = []
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        chunks = opened.data.log.chunks()
        received.append(len(next(chunks)))
        log_path.write_bytes(SEGMENTS[0].log)

        with pytest.raises(RetriableError, match="written to"):
            received.extend(map(len, chunks))

    assert sum(received) < len(SEGMENTS[0].log)


def test_chunks_when_other_content_comes_while_reading_then_retriable_not_corrupt(
    log_path: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    """Scenario 9: a truncation during a read does not mean that the disk is broken."""
    os.utime(log_path, ns=(0, 1_600_000_000_000_000_000))
    with source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened:
        chunks = opened.data.log.chunks()
        next(chunks)
        log_path.write_bytes(b"x" * len(SEGMENTS[0].log))

        with pytest.raises(RetriableError, match="written to"):
            list(chunks)


@pytest.mark.parametrize("position", [100, 5000, -1])
def test_chunks_when_a_bit_flipped_then_corrupt_before_the_last_chunk(
    log_path: Path, source: LogDirSource, segment: RolledSegment, position: int
) -> None:
    """R21: if a pass meets a bad batch, nothing of that pass may count as read."""
    content = bytearray(SEGMENTS[0].log)
    content[position] ^= 0x10
    rewrite_keeping_times(log_path, bytes(content))
    received: list[int] = []
    with (
        source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO) as opened,
        pytest.raises(CorruptError, match="CRC"),
    ):
        received.extend(map(len, opened.data.log.chunks()))

    assert sum(received) < len(content)


@pytest.mark.parametrize("lineage", [Lineage.of((1, 0)), Lineage.of((0, 0), (1, 50))])
def test_chunks_when_epoch_is_not_the_lineages_then_corrupt(
    source: LogDirSource, segment: RolledSegment, lineage: Lineage
) -> None:
    """R21, scenario 9: batches of another history do not pass as those of this one."""
    with (
        source.open_segment(ORDERS, segment, lineage, LSO) as opened,
        pytest.raises(CorruptError, match="epoch"),
    ):
        content_of(opened.data.log)


@pytest.mark.parametrize("tail", [b"\x00" * 4096, b"\x00", SEGMENTS[1].log[:300], b"garbage" * 9])
def test_open_when_tail_is_torn_then_corrupt(
    log_path: Path, source: LogDirSource, tail: bytes
) -> None:
    """Scenario 19: a segment has only whole batches, and no preallocated zeros."""
    log_path.write_bytes(SEGMENTS[0].log + tail)
    segment = source.local_log(ORDERS).rolled[0]

    with (
        pytest.raises(CorruptError),
        source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO),
    ):
        pass


def test_open_when_batches_run_into_the_next_segment_then_corrupt(
    directory: Path, source: LogDirSource
) -> None:
    segment_file(directory, 100, "log").rename(segment_file(directory, 99, "log"))
    segment = source.local_log(ORDERS).rolled[0]

    with (
        pytest.raises(CorruptError, match="reach beyond its end offset"),
        source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO),
    ):
        pass


def test_open_when_segment_is_put_aside_before_then_not_found(
    directory: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    put_aside(directory, 0)

    with (
        pytest.raises(NotFoundError),
        source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO),
    ):
        pass


def test_open_when_size_changed_since_listed_then_retriable(
    log_path: Path, source: LogDirSource, segment: RolledSegment
) -> None:
    log_path.write_bytes(SEGMENTS[0].log[:1000])

    with (
        pytest.raises(RetriableError, match="since it was listed"),
        source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO),
    ):
        pass


def test_open_when_a_segment_begins_inside_then_retriable(
    directory: Path, source: LogDirSource
) -> None:
    """D11: a listing that missed a file must not make a segment longer than it is."""
    hidden = segment_file(directory, 100, "log")
    content = hidden.read_bytes()
    hidden.unlink()
    segment = source.local_log(ORDERS).rolled[0]
    hidden.write_bytes(content)

    with (
        pytest.raises(RetriableError, match="does not end"),
        source.open_segment(ORDERS, segment, EPOCH_ZERO, LSO),
    ):
        pass


def test_open_when_last_stable_offset_is_inside_then_retriable(
    source: LogDirSource, segment: RolledSegment
) -> None:
    """Scenario 2: an open transaction blocks the segment."""
    with (
        pytest.raises(RetriableError, match="last stable offset"),
        source.open_segment(ORDERS, segment, EPOCH_ZERO, 99),
    ):
        pass
