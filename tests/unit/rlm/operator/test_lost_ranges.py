"""The loss of a segment in more ranges of offsets than one acceptance can name."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from rlm.operator.loss_acceptance import AcceptableLoss, LossAcceptance
from rlm.tasks.context.attempt import BoundedAttempt
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.anomaly import AnomalyReported
from rlmm.events.gaps import GapsRecorded
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.state.anomalies import LOST_RANGES_MAX_COUNT, Anomaly, AnomalyKind
from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.ranges import OffsetRange
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import FINISHED, ORDERS, claim, segment_metadata, step, writer

_RANGE_COUNT = LOST_RANGES_MAX_COUNT + 44
_DAMAGED = segment_metadata(1, 0, 2 * _RANGE_COUNT)


class _World:
    """A damaged segment; other segments have every second one of its offsets."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._ids: Iterator[int] = iter(range(0xA000, 0xB000))
        self.metadata = TopicBasedRemoteLogMetadataManager(
            MemoryTopic(MemoryLog(self.clock)),
            MetadataCache(MemoryStore()),
            self.clock,
            ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0)),
        )
        assert self.metadata.wait_ready(1000).is_ready
        self.metadata.publish(claim(writer()))
        others = [
            segment_metadata(2 + number, 2 * number, 2 * number + 1)
            for number in range(_RANGE_COUNT)
        ]
        for segment in (_DAMAGED, *others):
            for event in (step(segment, segment.state), step(segment, FINISHED)):
                assert self.metadata.publish(event).accepted
        self.report()

    def new_id(self) -> UUID:
        return UUID(int=next(self._ids))

    def report(self) -> None:
        anomaly = Anomaly(
            segment=_DAMAGED.segment_id.id,
            object_key="1.log",
            kind=AnomalyKind.MISSING,
            first_ms=1,
            last_ms=1,
            attempts=1,
        )
        event = AnomalyReported(event_id=self.new_id(), topic_id_partition=ORDERS, anomaly=anomaly)
        assert self.metadata.publish(event).accepted

    def acceptance(self) -> LossAcceptance:
        return LossAcceptance(self.metadata, None, self.clock, self.new_id)

    def examine(self) -> AcceptableLoss:
        attempt = BoundedAttempt(self.clock, self.clock.monotonic_ms() + 60_000, lambda: False)
        return self.acceptance().examine(_DAMAGED.segment_id, 2 * _RANGE_COUNT, attempt)

    def accepted(self) -> tuple[OffsetRange, ...]:
        """Return the offsets that are recorded as given up."""
        (found,) = (
            each
            for each in self.metadata.partition_state(ORDERS).anomalies
            if each.kind is AnomalyKind.LOSS_ACCEPTED
        )
        return found.lost

    def record_gaps(self, lost: tuple[OffsetRange, ...]) -> None:
        gaps = tuple(
            RecordedGap(offsets=each, reason=GapReason.EXTERNAL_START, recorded_ms=0)
            for each in lost
        )
        event = GapsRecorded(
            event_id=self.new_id(), topic_id_partition=ORDERS, writer=writer(), gaps=gaps
        )
        assert self.metadata.publish(event).accepted


def test_loss_when_in_more_ranges_than_fit_then_shows_and_gives_up_the_same_ones() -> None:
    world = _World()

    loss = world.examine()
    world.acceptance().accept(loss)

    assert (len(loss.lost), loss.later_count) == (LOST_RANGES_MAX_COUNT, 44)
    assert world.accepted() == loss.lost


def test_loss_when_the_first_ranges_are_recorded_as_gaps_then_the_next_ones_are_given_up() -> None:
    world = _World()
    first = world.examine()
    world.acceptance().accept(first)
    world.record_gaps(first.lost)

    rest = world.examine()

    assert (len(rest.lost), rest.later_count) == (44, 0)
    assert rest.lost[0].start_offset > first.lost[-1].start_offset


def test_loss_when_all_is_in_recorded_gaps_then_can_be_given_up_still() -> None:
    world = _World()
    lost = tuple(
        OffsetRange(start_offset=2 * number + 1, end_offset=2 * number + 2)
        for number in range(_RANGE_COUNT)
    )
    world.record_gaps(lost)

    assert world.examine().lost == lost[:LOST_RANGES_MAX_COUNT]
