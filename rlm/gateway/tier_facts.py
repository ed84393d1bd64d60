"""What the metadata says of a tiered partition as a whole, as fetches need it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rlm.remote_read.locate import log_start_of
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.ids import TopicIdPartition

_MAX_AGE_MS = 250
_LIMIT_COUNT = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFacts:
    """What bounds the log over both tiers.

    `recorded_start_offset`: nothing below may be read, whoever has it, by the log start or by a
    client's request of one; None: not recorded.

    `first_stored_offset`: the lowest in the store that may be read; None: nothing is stored.
    `trimmed_offset`: the broker's log is known to be cut below, or about to be; 0 if it never was.
    """

    recorded_start_offset: int | None = None
    first_stored_offset: int | None = None
    trimmed_offset: int = 0

    def log_start(self, local_start_offset: int) -> int:
        """The first offset of the log over both tiers."""
        return log_start_of(
            local_start_offset,
            recorded_offset=self.recorded_start_offset,
            first_stored_offset=self.first_stored_offset,
        )


class TierView(Protocol):
    """Where a session has these facts from."""

    def facts(self, partition: TopicIdPartition) -> TierFacts:
        """Of now, or of a short while ago. Does not block on anything outside."""


class MetadataTierView:
    """From this process' copy of the metadata, each looked up a few times a second at most.

    Used by one loop; not thread-safe. Memory: three numbers for each partition that is read.
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
        return TierFacts(
            recorded_start_offset=state.first_readable_offset,
            first_stored_offset=self._metadata.earliest_log_offset(partition),
            trimmed_offset=state.trimmed_offset or 0,
        )
