"""What the metadata says of a tiered partition as a whole, as fetches need it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rlm.policy.coverage import stored_ranges
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState

_MAX_AGE_MS = 250
_LIMIT_COUNT = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFacts:
    """What bounds the log over both tiers.

    `recorded_start_offset`: nothing below may be read, whoever has it, by the log start or by a
    client's request of one; None: not recorded.

    `first_stored_offset`: the lowest in the store, looked up only where no start is recorded.
    `trimmed_offset`: the broker's log is known to be cut below, or about to be; 0 if it never was.
    """

    recorded_start_offset: int | None = None
    first_stored_offset: int | None = None
    trimmed_offset: int = 0

    def log_start(self, local_start_offset: int) -> int:
        """The first offset of the log over both tiers."""
        if self.recorded_start_offset is not None:
            return self.recorded_start_offset
        if self.first_stored_offset is None:
            return local_start_offset
        return min(self.first_stored_offset, local_start_offset)


class TierView(Protocol):
    """Where a session has these facts from."""

    def facts(self, partition: TopicIdPartition) -> TierFacts:
        """Of now, or of a short while ago. Does not block on anything outside."""


class MetadataTierView:
    """From this process' copy of the metadata, each looked up a few times a second at most.

    Used by one loop; not thread-safe. Memory: two numbers for each partition that is read.
    """

    def __init__(self, metadata: RemoteLogMetadataManager, clock: Clock) -> None:
        self._metadata = metadata
        self._clock = clock
        self._known: dict[TopicIdPartition, tuple[int, TierFacts]] = {}

    def facts(self, partition: TopicIdPartition) -> TierFacts:
        now_ms = self._clock.monotonic_ms()
        known = self._known.get(partition)
        if known is not None and now_ms - known[0] <= _MAX_AGE_MS:
            return known[1]
        facts = self._look_up(partition)
        if len(self._known) >= _LIMIT_COUNT:
            self._known.clear()
        self._known[partition] = (now_ms, facts)
        return facts

    def _look_up(self, partition: TopicIdPartition) -> TierFacts:
        state = self._metadata.partition_state(partition)
        recorded = state.first_readable_offset
        return TierFacts(
            recorded_start_offset=recorded,
            first_stored_offset=(
                self._first_stored(partition, state.lineage) if recorded is None else None
            ),
            trimmed_offset=state.trimmed_offset or 0,
        )

    def _first_stored(self, partition: TopicIdPartition, lineage: Lineage) -> int | None:
        records = self._metadata.list_remote_log_segments(
            partition, states=(SegmentState.COPY_SEGMENT_FINISHED,)
        )
        for record in records:
            for stored in stored_ranges(lineage, (record.metadata,)):
                return stored.offsets.start_offset
        return None
