"""The bytes of a block that a directory accepts: whole entries, and a last one cut short."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from rsm.layout.block_v1.layout import decode_directory
from rsm.layout.blocks.block_directory import BlockDirectory, CutBatch, EntryRun
from rsm.layout.blocks.block_format import ENTRY_HEADER_BYTES, MIN_BLOCK_BYTES
from rsm.layout.blocks.log_points import LogPoint
from rsm.segment.batches.batch import LOG_OVERHEAD_BYTES, MAGIC_POSITION
from rsm.segment.errors import CorruptError
from rsm.segment.ranges import ByteRange
from tests.fakes.watched_storage import WatchedStorage
from tests.unit.rsm.layout.block_v1.test_layout import WHOLE, batches_of, copied_log

BATCHES = batches_of([40, 60])
SECOND = ENTRY_HEADER_BYTES + len(BATCHES[0])
"""The position in the run at which the second entry begins."""


def stored(store: WatchedStorage, *, block_bytes: int = 1 << 20) -> tuple[BlockDirectory, str]:
    """Return the directory of two batches, and the key of its data object."""
    _, metadata = copied_log(store, b"".join(BATCHES), block_bytes=block_bytes)
    data, index, _ = metadata.objects
    content = store.read_range(index.key, WHOLE)
    (ledger,) = decode_directory(content, "data", "index").ledgers
    return ledger, data.key


def directory_and_run() -> tuple[BlockDirectory, EntryRun, bytearray]:
    """Return a directory of two batches in one block, the run of both, and its bytes."""
    store = WatchedStorage()
    directory, data_key = stored(store)
    (run,) = directory.runs(ByteRange(start_position=0, end_position=directory.log_bytes))
    return directory, run, bytearray(store.read_range(data_key, run.positions))


def test_batches_when_all_is_there_then_each_and_where_the_last_begins() -> None:
    directory, run, content = directory_and_run()

    taken = directory.batches(run, bytes(content))

    assert taken.batches == BATCHES
    assert taken.start_log_position == 0
    assert taken.last == LogPoint(entry_id=1, log_position=len(BATCHES[0]))


def test_runs_when_the_end_is_a_blocks_end_then_none_in_the_next_block() -> None:
    directory, _ = stored(WatchedStorage(), block_bytes=MIN_BLOCK_BYTES)
    first_bytes = len(BATCHES[0])

    both = directory.runs(ByteRange(start_position=0, end_position=first_bytes + 1))
    (one,) = directory.runs(ByteRange(start_position=0, end_position=first_bytes))

    assert [run.begin.log_position for run in both] == [0, first_bytes]
    assert one == both[0]


@pytest.mark.parametrize("left_out_bytes", [1, 7])
@pytest.mark.parametrize("block_bytes", [MIN_BLOCK_BYTES, 1 << 20])
def test_runs_when_they_begin_within_a_later_batch_then_the_rest_of_it_alone_is_read(
    block_bytes: int, left_out_bytes: int
) -> None:
    directory, _ = stored(WatchedStorage(), block_bytes=block_bytes)
    second = len(BATCHES[0])
    known = LogPoint(entry_id=1, log_position=second)

    start, end = second + left_out_bytes, second + 20
    (run,) = directory.runs(ByteRange(start_position=start, end_position=end), known)
    (whole,) = directory.runs(ByteRange(start_position=second, end_position=end), known)

    assert run.cut == CutBatch(left_out_bytes=left_out_bytes, batch_bytes=len(BATCHES[1]))
    assert whole.cut is None


@pytest.mark.parametrize("entry_id", [0, 2, 500])
@pytest.mark.parametrize("block_bytes", [MIN_BLOCK_BYTES, 1 << 20])
def test_runs_when_a_noted_batch_contradicts_the_log_points_then_as_without_it(
    block_bytes: int, entry_id: int
) -> None:
    """A damaged object has more entries than its index says, and an earlier read noted one."""
    directory, _ = stored(WatchedStorage(), block_bytes=block_bytes)
    start = len(BATCHES[0])
    known = LogPoint(entry_id=entry_id, log_position=start + 30)
    wanted = ByteRange(start_position=start + 31, end_position=start + 40)

    assert directory.runs(wanted, known) == directory.runs(wanted)


def test_cut_when_the_end_is_within_the_last_batch_then_nothing_above_it() -> None:
    directory, run, content = directory_and_run()
    taken = directory.batches(run, bytes(content))

    end_position = len(BATCHES[0]) + 5
    pieces = taken.cut(ByteRange(start_position=3, end_position=end_position))

    assert pieces == [BATCHES[0][3:], BATCHES[1][:5]]


@pytest.mark.parametrize("batch_bytes", [1, LOG_OVERHEAD_BYTES, 21, 60])
def test_batches_when_the_last_is_cut_short_then_what_there_is_of_it(batch_bytes: int) -> None:
    directory, run, content = directory_and_run()

    taken = directory.batches(run, bytes(content[: SECOND + ENTRY_HEADER_BYTES + batch_bytes]))

    assert taken.batches == [BATCHES[0], BATCHES[1][:batch_bytes]]


@pytest.mark.parametrize("entry_bytes", [0, 1, ENTRY_HEADER_BYTES])
def test_batches_when_nothing_of_a_batch_was_read_then_corrupt(entry_bytes: int) -> None:
    directory, run, content = directory_and_run()

    with pytest.raises(CorruptError, match="entries end early") as refused:
        directory.batches(run, bytes(content[: SECOND + entry_bytes]))

    assert refused.value.context["position"] == run.positions.start_position + SECOND


def test_batches_when_an_entry_is_longer_than_the_rest_of_its_block_then_corrupt() -> None:
    """It is corrupt even if the batch states the same length."""
    directory, run, content = directory_and_run()
    length_bytes = len(BATCHES[1])
    struct.pack_into(">i", content, SECOND, length_bytes + 1)
    batch_length = SECOND + ENTRY_HEADER_BYTES + 8
    struct.pack_into(">i", content, batch_length, length_bytes + 1 - LOG_OVERHEAD_BYTES)

    with pytest.raises(CorruptError, match="entry length") as refused:
        directory.batches(run, bytes(content))

    assert refused.value.context["expected"] == f"1..{length_bytes}"


def test_batches_when_just_the_length_of_a_batch_was_read_then_it_is_checked() -> None:
    directory, run, content = directory_and_run()
    batch_length = SECOND + ENTRY_HEADER_BYTES + 8
    struct.pack_into(">i", content, batch_length, len(BATCHES[1]))

    with pytest.raises(CorruptError, match="an entry is not one batch"):
        directory.batches(run, bytes(content[: SECOND + ENTRY_HEADER_BYTES + LOG_OVERHEAD_BYTES]))


def test_batches_when_of_a_later_magic_then_corrupt() -> None:
    """No CRC covers the magic, so the CRC of version 2 still matches."""
    directory, run, content = directory_and_run()
    content[ENTRY_HEADER_BYTES + MAGIC_POSITION] = 3

    with pytest.raises(CorruptError, match="the batch's magic is unknown"):
        directory.batches(run, bytes(content))


def test_batches_when_an_entry_has_another_id_then_corrupt() -> None:
    """The block's number of entries is as expected, and each CRC is right."""
    directory, run, content = directory_and_run()
    struct.pack_into(">q", content, SECOND + 4, 5)

    with pytest.raises(CorruptError, match="the entry id is wrong") as refused:
        directory.batches(run, bytes(content))

    context = refused.value.context
    assert (context["expected"], context["found"]) == (1, 5)
    assert context["position"] == run.positions.start_position + SECOND + 4


def test_batches_when_a_block_has_more_entries_than_the_index_says_then_corrupt() -> None:
    """The entries' ids are consecutive, but the next block begins with the second one's id."""
    directory, run, content = directory_and_run()
    next_block = LogPoint(entry_id=1, log_position=directory.log_bytes)

    with pytest.raises(CorruptError, match="the entry id is wrong"):
        directory.batches(replace(run, block_end=next_block), bytes(content))


@pytest.mark.parametrize(
    ("length_bytes", "message"), [(-1, "entry length"), (0, "entry length"), (1, "truncated")]
)
def test_batches_when_an_entry_is_shorter_than_any_batch_then_corrupt(
    length_bytes: int, message: str
) -> None:
    """An entry of one byte is valid in Pulsar, so the error is about the batch."""
    directory, run, content = directory_and_run()
    struct.pack_into(">i", content, SECOND, length_bytes)

    with pytest.raises(CorruptError, match=message):
        directory.batches(run, bytes(content))
