"""What expires before it was exported is reported once, whatever is exported above it."""

from __future__ import annotations

from pathlib import Path

from rlmm.events import GapReason, RecordedGap
from rlmm.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange
from spark_tools.export.losses import Losses
from spark_tools.export.ranges import ExportedRange
from spark_tools.export.skipped import SkipCause, SkippedRange, SkippedRanges
from spark_tools.stored_partition import StoredPartition
from tests.metadata_builder import ORDERS, log_starts
from tests.unit.spark_tools.export.test_ranges import done, planned
from tests.unit.spark_tools.local_files import LocalFiles


def stored(log_start_offset: int, *gaps: tuple[int, int]) -> StoredPartition:
    recorded = tuple(
        RecordedGap(offsets=offsets(*each), reason=GapReason.ACCEPTED_LOSS, recorded_ms=1)
        for each in gaps
    )
    state = PartitionState(
        lineage=Lineage.of((0, 0)),
        log_starts=log_starts(log_start_offset),
        recorded_gaps=recorded,
        gaps_epoch=0,
    )
    return StoredPartition(topic_id_partition=ORDERS, state=state, segments=())


def offsets(start: int, end: int) -> OffsetRange:
    return OffsetRange(start_offset=start, end_offset=end)


def unreadable(start: int, end: int) -> SkippedRange:
    return SkippedRange.of(ORDERS, offsets(start, end), SkipCause.UNREADABLE, "away")


def losses(directory: Path, exported: list[ExportedRange]) -> Losses:
    return Losses(SkippedRanges(LocalFiles(directory)), exported)


def expired(found: Losses, partition: StoredPartition, start: int, end: int) -> list[str]:
    ranges = found.expired_now([partition], [planned(start, end)], lambda _: True)
    return [f"{each.offsets} {each.cause}" for each in ranges]


def test_expired_when_skipped_once_and_exported_above_then_reported_until_an_export_has_ended(
    tmp_path: Path,
) -> None:
    exported = done((0, 100))
    first = losses(tmp_path, exported)
    first.expired_now([stored(0)], [planned(100, 300)], lambda _: True)
    first.skip(unreadable(100, 200))
    exported += done((200, 300))
    first.finish([])

    killed = losses(tmp_path, exported)
    assert expired(killed, stored(150), 300, 400) == ["[100, 150) expired"]
    killed.write()
    exported += done((300, 400))
    second = losses(tmp_path, exported)
    lost = second.expired_now([stored(150)], [planned(400, 500)], lambda _: True)
    assert [str(each.offsets) for each in lost] == ["[100, 150)"]
    second.finish(lost)

    third = losses(tmp_path, exported)
    assert expired(third, stored(180), 400, 500) == ["[150, 180) expired"]


def test_expired_when_never_seen_by_an_export_then_on_record_before_more_is_exported(
    tmp_path: Path,
) -> None:
    exported = done((0, 100))
    killed = losses(tmp_path, exported)
    assert expired(killed, stored(200), 200, 300) == ["[100, 200) expired"]
    killed.write()
    exported += done((200, 300))

    assert expired(losses(tmp_path, exported), stored(250), 300, 400) == ["[100, 200) expired"]


def test_record_when_exported_or_given_up_as_a_gap_then_nothing_is_left_of_it(
    tmp_path: Path,
) -> None:
    found = losses(tmp_path, [])
    found.skip(unreadable(0, 10))
    found.skip(unreadable(20, 30))
    found.finish([])

    later = losses(tmp_path, done((0, 10)))
    assert expired(later, stored(0, (20, 30)), 10, 50) == []
    later.finish([])

    assert SkippedRanges(LocalFiles(tmp_path)).ranges() == []
