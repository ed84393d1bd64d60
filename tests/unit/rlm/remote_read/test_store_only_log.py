"""The log of a partition from its store alone: which attempt each offset is read from."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from rlm.remote_read.reader import LookedUpReader
from rlm.remote_read.store_only_log import StoreOnlyLog
from rsm.opening import open_segments, open_store_scan
from rsm.segment.batches.aborted import Isolation
from rsm.segment.batches.records import ControlType, Record
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, NotFoundError, UnsupportedError
from rsm.segment.local_segment import AbortedTransaction
from rsm.segment.metadata import RemoteLogSegmentMetadata, short_keys
from rsm.segment.ranges import ByteRange, OffsetRange
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.store_settings import SegmentSettings
from tests.remote_world import TIP, InlineExecutor, segment_of
from tests.segment_builder import build_batch, build_control_batch, build_segment, records
from tests.stored_attempts import StoredAttempts

LAYOUTS = ("raw", "block_v1", "block_v2", "chunked")
BASE_MS = 1_700_000_000_000


@pytest.fixture
def attempts(tmp_path: Path) -> StoredAttempts:
    return StoredAttempts(FilesystemChunkStorage(tmp_path))


def log_of(
    attempts: StoredAttempts, *, isolation: Isolation = Isolation.READ_UNCOMMITTED
) -> StoreOnlyLog:
    executor = InlineExecutor()
    found = open_store_scan(SegmentSettings(), attempts.storage).partition(TIP, executor)
    segments = open_segments(SegmentSettings(), attempts.storage)
    return StoreOnlyLog(found, segments, LookedUpReader(segments, executor), isolation)


def read(log: StoreOnlyLog, begin: int = 0, end: int | None = None) -> list[Record]:
    return [record for found in log.read(begin, end) for record in found.records]


def offsets_of(log: StoreOnlyLog, begin: int = 0, end: int | None = None) -> list[int]:
    return [record.offset for record in read(log, begin, end)]


def damage(attempts: StoredAttempts, stored: RemoteLogSegmentMetadata, position: int) -> str:
    """Change one byte of a segment's log object, or of one of its chunks; return its name."""
    begins = accumulate((each.length_bytes or 0 for each in stored.objects), initial=0)
    named = zip(begins, stored.objects, strict=False)
    begin, found = max(
        ((begin, each) for begin, each in named if begin <= position), key=lambda each: each[0]
    )
    key, length_bytes, position = found.key, found.length_bytes or 0, position - begin
    content = bytearray(
        attempts.storage.read_range(key, ByteRange(start_position=0, end_position=length_bytes))
    )
    content[position] ^= 0xFF
    attempts.rewrite(key, bytes(content))
    return key


def test_read_when_layouts_are_mixed_then_every_record_once_in_order(
    attempts: StoredAttempts,
) -> None:
    for number, layout in enumerate(LAYOUTS * 2):
        attempts.store(segment_of(100 * number), layout=layout)
    log = log_of(attempts)

    assert log.offsets() == OffsetRange(start_offset=0, end_offset=800)
    assert read(log) == [*records(800, value_bytes=1000)]
    assert offsets_of(log, 13, 137) == [*range(13, 137)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_read_when_attempts_overlap_then_every_offset_once(
    attempts: StoredAttempts, layout: str
) -> None:
    """A copied segment, a streamed one that overlaps it, and a second attempt of the first."""
    attempts.store(segment_of(0))
    attempts.store(segment_of(0), layout=layout)
    attempts.store(segment_of(50, batch_count=20), layout="block_v2")
    attempts.store(segment_of(100), layout="block_v1")

    assert offsets_of(log_of(attempts)) == [*range(250)]


def test_read_when_a_fenced_leader_stored_more_then_the_newer_leaders_records(
    attempts: StoredAttempts,
) -> None:
    """Scenarios 27 and 28: what an unclean election cut off is never read."""
    fenced = Lineage.of((0, 0), (1, 50))
    newer = Lineage.of((0, 0), (2, 70))
    attempts.store(segment_of(0, batch_count=5), lineage=fenced)
    attempts.store(segment_of(50, batch_count=30, leader_epoch=1), lineage=fenced)
    attempts.store(segment_of(50, batch_count=2), lineage=newer)
    attempts.store(segment_of(70, leader_epoch=2, value_bytes=7), lineage=newer)

    found = read(log_of(attempts))

    assert [each.offset for each in found] == [*range(170)]
    assert {len(each.value or b"") for each in found[:70]} == {1000}
    assert {len(each.value or b"") for each in found[70:]} == {20}


def test_read_when_an_attempt_is_unfinished_then_ends_before_it(attempts: StoredAttempts) -> None:
    attempts.store(segment_of(0))
    open_upload = attempts.store(segment_of(100), layout="block_v2")
    attempts.remove(open_upload.objects[-1].key)

    assert offsets_of(log_of(attempts)) == [*range(100)]


def test_read_when_a_segment_is_deleted_in_part_then_another_attempt_is_read(
    attempts: StoredAttempts,
) -> None:
    deleted = attempts.store(segment_of(0, batch_count=20))
    for base in (0, 100):
        attempts.store(segment_of(base), layout="block_v2")
    attempts.remove(deleted.objects[0].key)

    assert offsets_of(log_of(attempts)) == [*range(200)]


def test_read_when_the_oldest_segments_have_expired_then_begins_at_the_first_stored(
    attempts: StoredAttempts,
) -> None:
    expired = attempts.store(segment_of(0))
    attempts.store(segment_of(100))
    attempts.remove(expired.objects[0].key)
    log = log_of(attempts)

    assert log.offsets().start_offset == 100
    assert offsets_of(log, 100) == [*range(100, 200)]


def test_read_when_in_a_hole_then_error_names_where_it_ends_and_what_is_missing(
    attempts: StoredAttempts,
) -> None:
    stored = [attempts.store(segment_of(base)) for base in (0, 100, 200)]
    attempts.remove(stored[1].objects[0].key)
    log = log_of(attempts)
    found: list[int] = []

    with pytest.raises(NotFoundError, match=r"offset=100, until_offset=200") as caught:
        found.extend(each.offset for part in log.read(0) for each in part.records)

    assert caught.value.context["missing_object"] == stored[1].objects[0].key
    assert found == [*range(100)]
    assert offsets_of(log, 200) == [*range(200, 300)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_read_when_data_is_corrupt_then_error_with_object_and_position_after_what_is_whole(
    attempts: StoredAttempts, layout: str
) -> None:
    stored = attempts.store(segment_of(0), layout=layout)
    key = damage(attempts, stored, 55_000)
    found: list[int] = []

    with pytest.raises(CorruptError, match="position") as caught:
        found.extend(e.offset for part in log_of(attempts).read(0) for e in part.records)

    names = short_keys(stored.object_keys) if layout == "chunked" else (key,)
    assert names[0] in str(caught.value)
    assert found == [*range(len(found))]
    assert len(found) < 60


def test_read_when_a_damaged_segment_has_a_twin_then_reads_that_from_there_on(
    attempts: StoredAttempts, caplog: pytest.LogCaptureFixture
) -> None:
    attempts.store(segment_of(0), layout="block_v2")
    damaged = attempts.store(segment_of(0), written_ms=1)
    damage(attempts, damaged, 55_000)

    assert read(log_of(attempts)) == [*records(100, value_bytes=1000)]
    assert "from another" in caplog.text


def test_read_when_only_a_part_has_another_attempt_then_the_first_error_at_its_end(
    attempts: StoredAttempts,
) -> None:
    damaged = attempts.store(segment_of(0, batch_count=20))
    attempts.store(segment_of(0))
    damage(attempts, damaged, 10_000)
    found: list[int] = []

    with pytest.raises(CorruptError) as caught:
        found.extend(e.offset for part in log_of(attempts).read(0) for e in part.records)

    assert caught.value.context["segment_id"] == damaged.segment_id
    assert found == [*range(100)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_read_when_the_last_companion_is_corrupt_then_error_after_all_records(
    attempts: StoredAttempts, layout: str
) -> None:
    """The log ends with an error, because the corrupt segment may continue it."""
    attempts.store(segment_of(0))
    last = attempts.store(segment_of(100), layout=layout)
    attempts.rewrite(last.objects[-1].key, b"RLMC\x00\x01 damaged")
    log = log_of(attempts)
    found: list[int] = []

    with pytest.raises(CorruptError) as caught:
        found.extend(e.offset for part in log.read(0) for e in part.records)

    assert caught.value.context["key"] == last.objects[-1].key
    assert found == [*range(100)]
    assert offsets_of(log, 0, 100) == [*range(100)]


def test_read_when_a_corrupt_companion_is_of_stored_offsets_then_error_only_at_the_end(
    attempts: StoredAttempts,
) -> None:
    for base in (0, 100):
        attempts.store(segment_of(base))
    second = attempts.store(segment_of(0), layout="block_v1")
    attempts.rewrite(second.objects[-1].key, b"RLMC\x00\x02 of a later version")

    with pytest.raises(UnsupportedError):
        read(log_of(attempts))
    assert offsets_of(log_of(attempts), 0, 200) == [*range(200)]


def test_offsets_when_nothing_is_complete_then_error(attempts: StoredAttempts) -> None:
    stored = attempts.store(segment_of(0))
    attempts.remove(stored.objects[-1].key)

    with pytest.raises(NotFoundError, match="no complete segment"):
        log_of(attempts).offsets()


def test_offsets_when_all_is_unreadable_then_that_error(attempts: StoredAttempts) -> None:
    stored = attempts.store(segment_of(0))
    attempts.rewrite(stored.objects[-1].key, b"?")

    with pytest.raises(CorruptError):
        log_of(attempts).offsets()


@pytest.mark.parametrize(
    ("since_ms", "offset"), [(0, 0), (BASE_MS + 150, 150), (BASE_MS + 400, None)]
)
def test_offset_since_when_in_any_layout_then_the_first(
    attempts: StoredAttempts, since_ms: int, offset: int | None
) -> None:
    for number, layout in enumerate(LAYOUTS):
        attempts.store(segment_of(100 * number), layout=layout)

    assert log_of(attempts).offset_since(since_ms) == offset


@pytest.mark.parametrize("layout", LAYOUTS)
def test_read_when_committed_then_aborted_records_are_left_out(
    attempts: StoredAttempts, layout: str
) -> None:
    """R19: the companion has the aborted transactions; no broker is asked."""
    transactional: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0}
    segment = build_segment(
        [
            build_batch(records(3), is_transactional=True, **transactional),
            build_control_batch(3, ControlType.ABORT, **transactional),
            build_batch(records(2, base_offset=4), is_transactional=True, **transactional),
            build_control_batch(6, ControlType.COMMIT, **transactional),
        ]
    )
    aborted = AbortedTransaction(producer_id=5, first_offset=0, last_offset=3, last_stable_offset=4)
    attempts.store(segment, layout=layout, aborted=[aborted])

    committed = offsets_of(log_of(attempts, isolation=Isolation.READ_COMMITTED))

    assert committed == [4, 5]
    assert offsets_of(log_of(attempts)) == [0, 1, 2, 4, 5]
