from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.remote_read.anomalies import ReadAnomalies
from rlm.remote_read.anomaly_reporter import UPDATE_INTERVAL_MS, AnomalyReporter
from rlmm.events.partition_delete import RemotePartitionDeleteMetadata
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.partition_state import RemotePartitionDeleteState
from rsm.segment.errors import NotFoundError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange
from tests.log_records import message_of
from tests.metadata_builder import segment_metadata
from tests.remote_world import TIP, RemoteWorld, segment_of


class ReportingWorld(RemoteWorld):
    """A segment whose log is missing, and the processes that read it."""

    def __init__(self) -> None:
        super().__init__()
        self.claim()
        self.segment: RemoteLogSegmentMetadata = self.store(segment_of(0))
        self.event_count = 0

    def process(self) -> tuple[ReadAnomalies, AnomalyReporter]:
        """Return the anomalies and the reporter of one more process."""
        anomalies = ReadAnomalies(self.clock)
        return anomalies, AnomalyReporter(anomalies, self.metadata, self.clock, self.new_id)

    def new_id(self) -> UUID:
        self.event_count += 1
        return UUID(int=0xA000 + self.event_count)

    def fail(self, anomalies: ReadAnomalies, *, number: int = 0) -> None:
        """Record that a read finds the object of this number missing."""
        key = self.segment.objects[number].key
        anomalies.record(
            self.segment, NotFoundError("the object is not in the store", name=key), offset=5
        )

    def on_record(self) -> tuple[Anomaly, ...]:
        return self.metadata.partition_state(TIP).anomalies

    def written(self) -> int:
        """Return the number of records and tombstones in the metadata topic."""
        return self.log.end_offset(0)

    def delete_partition(self) -> None:
        """Delete the partition, so that its events are refused."""
        for state in RemotePartitionDeleteState:
            self.metadata.publish(
                RemotePartitionDeleteMetadata(
                    event_id=UUID(int=0xB000 + state.value),
                    topic_id_partition=TIP,
                    state=state,
                    event_timestamp_ms=0,
                    broker_id=1,
                )
            )


@pytest.fixture
def world() -> ReportingWorld:
    return ReportingWorld()


def test_report_when_reads_fail_again_then_one_record_updated_once_a_minute(
    world: ReportingWorld,
) -> None:
    anomalies, reporter = world.process()
    for _ in range(3):
        world.fail(anomalies)
        reporter.step()
    first = world.on_record()
    world.clock.now_ms += UPDATE_INTERVAL_MS

    reporter.step()

    (found,) = world.on_record()
    assert [each.attempts for each in first] == [1]
    assert (found.segment, found.object_key) == (
        world.segment.segment_id.id,
        world.segment.objects[0].key,
    )
    assert (found.kind, found.attempts) == (AnomalyKind.MISSING, 3)
    assert world.event_count == 2


def test_report_when_two_processes_fail_then_their_attempts_are_of_one_record(
    world: ReportingWorld,
) -> None:
    for _ in range(2):
        anomalies, reporter = world.process()
        world.fail(anomalies)
        reporter.step()

    assert [each.attempts for each in world.on_record()] == [2]


def test_report_when_the_object_was_read_again_then_the_record_is_cleared(
    world: ReportingWorld,
) -> None:
    anomalies, reporter = world.process()
    world.fail(anomalies)
    reporter.step()
    assert len(world.on_record()) == 1

    anomalies.record_success(world.segment.segment_id, OffsetRange(start_offset=0, end_offset=6))
    reporter.step()

    assert world.metadata.caught_up(TIP)
    assert world.on_record() == ()


def test_report_when_other_offsets_were_read_then_the_record_stays(world: ReportingWorld) -> None:
    anomalies, reporter = world.process()
    world.fail(anomalies)
    reporter.step()

    anomalies.record_success(world.segment.segment_id, OffsetRange(start_offset=6, end_offset=50))
    reporter.step()

    assert world.metadata.caught_up(TIP)
    assert len(world.on_record()) == 1


def test_report_when_a_partition_has_no_room_then_others_are_recorded_and_it_is_logged_once(
    world: ReportingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    other = replace(TIP, partition=TIP.partition + 1)
    world.claim(partition=other)
    elsewhere = world.store(segment_of(0), partition=other)
    world.fill_anomalies(UUID(int=0xF0))
    anomalies, reporter = world.process()
    world.fail(anomalies)
    anomalies.record(elsewhere, NotFoundError("the object is not in the store"), offset=5)
    caplog.clear()

    reporter.step()
    reporter.step()

    recorded = world.metadata.partition_state(other).anomalies
    assert [each.segment for each in recorded] == [elsewhere.segment_id.id]
    assert [message_of(each) for each in caplog.records] == ["cannot record anomaly"]


def test_report_when_the_attempts_on_record_are_as_many_as_fit_then_stays_at_that(
    world: ReportingWorld,
) -> None:
    """Anyone may write the record, with any count that its format can hold."""
    most = (1 << 63) - 1
    world.record_anomaly(
        Anomaly(
            segment=world.segment.segment_id.id,
            object_key=world.segment.objects[0].key,
            kind=AnomalyKind.MISSING,
            first_ms=1,
            last_ms=1,
            attempts=most,
        )
    )
    anomalies, reporter = world.process()
    world.fail(anomalies)

    reporter.step()

    assert [each.attempts for each in world.on_record()] == [most]


def test_report_when_an_object_fails_and_is_read_in_turn_then_one_record_and_tombstone_a_minute(
    world: ReportingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    anomalies, reporter = world.process()
    started = world.written()

    for _ in range(12):
        world.fail(anomalies)
        reporter.step()
        anomalies.record_success(
            world.segment.segment_id, OffsetRange(start_offset=0, end_offset=6)
        )
        reporter.step()
        assert world.metadata.caught_up(TIP)
        world.clock.now_ms += UPDATE_INTERVAL_MS // 12
    within_a_minute = world.written() - started
    warnings = [each for each in caplog.records if each.levelname == "WARNING"]
    world.fail(anomalies)
    reporter.step()

    assert within_a_minute == 2
    assert len(warnings) == 1
    assert [each.attempts for each in world.on_record()] == [1]


def test_report_when_it_is_refused_then_again_only_after_a_minute(world: ReportingWorld) -> None:
    world.delete_partition()
    anomalies, reporter = world.process()
    world.fail(anomalies)

    for _ in range(12):
        reporter.step()
        world.clock.now_ms += UPDATE_INTERVAL_MS // 12
    within_a_minute = world.event_count
    reporter.step()

    assert world.on_record() == ()
    assert len(anomalies.open_now()) == 1
    assert (within_a_minute, world.event_count) == (1, 2)


def test_anomalies_when_a_segment_fails_on_then_one_warning_and_a_summary_every_ten_minutes(
    world: ReportingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    anomalies, _ = world.process()

    for _ in range(21):
        world.fail(anomalies)
        world.clock.now_ms += 60_000

    assert [each.getMessage().partition(" segment_id=")[0] for each in caplog.records] == [
        "cannot read a stored segment",
        "cannot read stored segments segments=1 attempts=10",
        "cannot read stored segments segments=1 attempts=10",
    ]


def test_forget_when_another_object_of_the_segment_fails_on_then_no_other_warning(
    world: ReportingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    anomalies, _ = world.process()
    world.fail(anomalies)
    world.fail(anomalies, number=1)
    (forgotten,) = (
        each.anomaly.id
        for each in anomalies.open_now()
        if each.object_key == world.segment.objects[0].key
    )

    anomalies.forget(forgotten)
    world.clock.now_ms += 60_000
    world.fail(anomalies, number=1)

    assert [message_of(each) for each in caplog.records] == ["cannot read a stored segment"]


def test_anomalies_when_a_segment_fails_again_after_a_minute_then_another_warning(
    world: ReportingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    anomalies, _ = world.process()
    caplog.set_level("INFO")

    for pause_ms in (59_999, 60_000, 0):
        world.fail(anomalies)
        anomalies.record_success(
            world.segment.segment_id, OffsetRange(start_offset=0, end_offset=6)
        )
        world.clock.now_ms += pause_ms

    assert [each.getMessage().partition(" segment_id=")[0] for each in caplog.records] == [
        "cannot read a stored segment",
        "read a stored segment again",
        "cannot read a stored segment",
        "read a stored segment again",
    ]


def test_anomalies_when_there_is_no_room_for_a_segment_then_it_is_logged_once_there_is(
    world: ReportingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """A segment without an open anomaly is not remembered as logged."""
    anomalies, _ = world.process()
    crowded_out, *others = (
        segment_metadata(number, 10 * number, 10 * number + 10) for number in range(1_001)
    )

    def fail(segment: RemoteLogSegmentMetadata) -> None:
        error = NotFoundError("the object is not in the store", name=segment.objects[0].key)
        anomalies.record(segment, error, offset=segment.offsets.start_offset)

    def succeed(segment: RemoteLogSegmentMetadata) -> None:
        anomalies.record_success(segment.segment_id, segment.offsets)

    fail(crowded_out)
    succeed(crowded_out)
    for segment in (*others, crowded_out):
        fail(segment)
    assert len(anomalies.open_now()) == len(others)
    for segment in others:
        succeed(segment)
    world.clock.now_ms += 60_000
    caplog.clear()
    fail(crowded_out)

    assert [message_of(each) for each in caplog.records] == ["cannot read a stored segment"]
