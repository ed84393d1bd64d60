"""Remembers where the stream of a led partition continues, and whether it may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock, RLock
from uuid import UUID

from rlm.facts.local_log import LogFileSize, LogPosition
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.stream.permit import StreamPermit, counted_from, unstored_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStream:
    """Represents the open segment of a stream, and when it was opened (monotonic).

    `is_caught_up`: at the last check, the segment contained all committed records.
    """

    begin_offset: int
    end_offset: int
    size_bytes: int
    opened_at_ms: int
    is_caught_up: bool


class StreamState:
    """Represents a partition's stream. Thread-safe.

    The cycle permits or forbids the stream. The watch offers due streams, and the lane reports what
    it has streamed. A cycle that read the partition before a segment was sealed sets no permit,
    because it did not see the segment. The wait of the oldest record includes the time before this
    process knew the partition.
    """

    __slots__ = (
        "_begin",
        "_counted_from",
        "_earlier_since_ms",
        "_history_end_offset",
        "_is_account_complete",
        "_known_since_ms",
        "_lock",
        "_missed_count",
        "_permit",
        "_spent",
        "_spent_lock",
        "_stable_since",
        "_version",
        "is_new",
        "open_stream",
    )

    def __init__(self) -> None:
        self._lock = RLock()  # An offer may run the stream in the same thread.
        self._permit: StreamPermit | None = None
        self._begin: LogPosition | None = None
        self._counted_from: tuple[LogPosition, LogPosition] | None = None
        self._history_end_offset = 0
        self._known_since_ms: int | None = None
        self._earlier_since_ms: int | None = None
        self._version = 0
        self._missed_count = 0
        self._is_account_complete = False
        self._stable_since: tuple[int, int] | None = None
        self._spent: frozenset[UUID] = frozenset()
        self._spent_lock = Lock()  # It is separate, because the store's threads call `spend`.
        self.is_new = True
        """True until the first call of `count_from`."""
        self.open_stream: OpenStream | None = None

    @property
    def permit(self) -> StreamPermit | None:
        return self._permit

    @property
    def begin(self) -> LogPosition | None:
        """Return where the next segment begins; None before the first permit."""
        return self._begin

    @property
    def history_end_offset(self) -> int:
        """Return the committed end offset at which the stream became permitted."""
        return self._history_end_offset

    def version(self) -> int:
        """Return a number that changes with each sealed segment and each withdrawn permit."""
        with self._lock:
            return self._version

    def spent(self) -> frozenset[UUID]:
        """Return the unfinished streams whose parts the next segment will not reuse."""
        return self._spent

    def spend(self, segment_id: UUID) -> None:
        """Record that the parts of an unfinished stream are no longer needed."""
        with self._spent_lock:
            self._spent |= {segment_id}

    def count_from(self, since_ms: int) -> None:
        """Count the wait at the stream's first position from `since_ms` (monotonic)."""
        with self._lock:
            self.is_new = False
            self._earlier_since_ms = since_ms

    def permit_from(
        self, permit: StreamPermit | None, version: int, committed_end_offset: int = 0
    ) -> None:
        """Set the permit of a cycle, if `version` is still the present version.

        If `permit` is None, forbids the stream whatever the version. `committed_end_offset` is the
        end of the committed records that the cycle saw.
        """
        with self._lock:
            if permit is None:
                self._permit = None
            elif version == self._version:
                if self._permit is None:
                    self._history_end_offset = committed_end_offset
                self._permit = permit
                if self._begin is None or self._begin.offset != permit.begin_offset:
                    if self._begin is not None:
                        self._earlier_since_ms = None
                    self._begin = LogPosition(offset=permit.begin_offset)
                    self._known_since_ms = None

    def permits_from(self, begin_offset: int) -> bool:
        """Return whether a stream that begins at `begin_offset` is still permitted."""
        with self._lock:
            begin = self._begin
            return self._permit is not None and begin is not None and begin.offset == begin_offset

    def offer(self, start: Callable[[StreamPermit, LogPosition], bool]) -> None:
        """Call `start` unless the stream is forbidden; no cycle can forbid it during the call."""
        with self._lock:
            if self._permit is not None and self._begin is not None:
                start(self._permit, self._begin)

    def waited_ms(self, begin: LogPosition, now_ms: int, *, has_records: bool) -> int:
        """Return how long records at `begin` have been known; 0 if there are none.

        Counts from the first call that has records at this `begin`. The first call after
        `count_from` counts from the time that `count_from` set.
        """
        with self._lock:
            since_ms, self._earlier_since_ms = self._earlier_since_ms, None
            if not has_records or begin != self._begin:
                self._known_since_ms = None
                return 0
            if self._known_since_ms is None:
                self._known_since_ms = now_ms if since_ms is None else since_ms
            return now_ms - self._known_since_ms

    def unstored_bytes(self, files: Sequence[LogFileSize], begin: LogPosition) -> int:
        """Return the size of the unstored log in bytes, as far as it is known.

        `files` begin with the file that contains `begin`. If the position of `begin` in that file
        is unknown, counts only bytes that were written to it after the first call with `begin`.
        """
        with self._lock:
            if self._counted_from is None or self._counted_from[0] != begin:
                self._counted_from = begin, counted_from(files, begin)
            return unstored_bytes(files, self._counted_from[1])

    def unstored_ms(self, now_ms: int) -> int | None:
        """Return how long the oldest unstored record has been known; None if there is none."""
        with self._lock:
            since_ms, opened = self._known_since_ms, self.open_stream
            if since_ms is None and opened is not None:
                since_ms = opened.opened_at_ms
            return None if since_ms is None else now_ms - since_ms

    def open_transaction_ms(self, offsets: PartitionOffsets, now_ms: int) -> int | None:
        """Return how long the last stable offset has stayed the same below the high watermark.

        Returns None if it is not below the high watermark.
        """
        stable = offsets.last_stable_offset
        with self._lock:
            if stable >= offsets.high_watermark:
                self._stable_since = None
                return None
            if self._stable_since is None or self._stable_since[0] != stable:
                self._stable_since = (stable, now_ms)
            return now_ms - self._stable_since[1]

    def miss_account(self) -> None:
        """Record that the account lacks the end of an offload segment."""
        with self._lock:
            self._missed_count += 1
            self._is_account_complete = False

    def missing_accounts(self) -> int | None:
        """Return a number for `mark_account_complete`; None if the account lacks nothing.

        At first the account counts as incomplete: an earlier lead may have missed an end.
        """
        with self._lock:
            return None if self._is_account_complete else self._missed_count

    def mark_account_complete(self, missed_count: int) -> None:
        """Record that the account is complete, unless another end was missed meanwhile."""
        with self._lock:
            self._is_account_complete = missed_count == self._missed_count

    def continue_after(self, following: LogPosition) -> None:
        """Continue after a stored segment.

        If that segment reaches stored records, forbid the stream until the next cycle, which knows
        their end.
        """
        with self._spent_lock:
            self._spent = frozenset()
        with self._lock:
            self._version += 1
            self._begin = following
            self._known_since_ms = None
            above = None if self._permit is None else self._permit.stored_from_offset
            if above is not None and following.offset >= above:
                self._permit = None

    def withdraw_permit(self) -> None:
        """Forbid the stream until the next cycle: the last cycle's decision no longer holds."""
        with self._lock:
            self._version += 1
            self._permit = None
