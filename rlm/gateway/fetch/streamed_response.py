"""Changes a Fetch response that the gateway streams, because none of it comes from the store. Pure.

This module removes the fetch session and sets the log start over both tiers. It replaces an
OFFSET_OUT_OF_RANGE of a tiered partition with a retriable error, because the store may have the
offset. When the client retries, the gateway plans the fetch with the store.
"""

from __future__ import annotations

from uuid import UUID

from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.plan import NO_SESSION_ID, FetchPlan
from rlm.wire.error_codes import ErrorCode, in_fetch
from rlm.wire.scanning.fetch_scanner import ScannedPartition, ScannedResponse


class FetchPatches:
    """Visits one response (rlm.wire.scanning.fetch_scanner.FetchVisitor).

    `is_refused`: the broker returned NOT_LEADER_OR_FOLLOWER for at least one partition.
    """

    def __init__(self, plan: FetchPlan, local_starts: LocalStarts) -> None:
        self._tiered = plan.tiered
        self._storage_error = in_fetch(ErrorCode.KAFKA_STORAGE_ERROR, plan.version)
        self._local_starts = local_starts
        self.is_refused = False

    def response(self, found: ScannedResponse) -> ScannedResponse:
        return found._replace(session_id=NO_SESSION_ID)

    def partition(
        self, topic: str | UUID, found: ScannedPartition, *, position: int
    ) -> ScannedPartition:
        if found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self.is_refused = True
        tiered = self._tiered.get((topic, found.partition))
        if tiered is None:
            return found
        if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._local_starts.record_missing(tiered.topic_id_partition, tiered.sent_offset)
            return found._replace(error_code=self._storage_error)
        if found.error_code == ErrorCode.NONE and found.log_start_offset >= 0:
            return found._replace(log_start_offset=tiered.facts.log_start(found.log_start_offset))
        return found

    def records(self, records_bytes: int) -> None:
        """Leave the records unchanged."""
