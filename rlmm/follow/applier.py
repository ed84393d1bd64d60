"""Reads and folds records, and writes their effects and positions in one batch."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.overlay import Overlay
from rlmm.codec import FOLD_VERSION, needed_fold_version
from rlmm.events.parsed_segment import ParsedSegment
from rlmm.fold import ParsedRecord, Tombstone, fold, note_unread, parse_record
from rlmm.follow.progress import Progress
from rlmm.partitioner import is_misplaced
from rlmm.positions import ReadPosition, TopicRecord
from rlmm.spi import PublishResult
from rlmm.topic.event_topic import EventTopic
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

CORRUPT = "corrupt"
UNSUPPORTED = "unsupported"
NEWER_VERSION = "newer_version"
MISPLACED = "misplaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCounts:
    """Represents the results of one `step`: record counts, refused and skipped ones by reason.

    `newest_append_time_ms` is the largest LogAppendTime of the records, or 0 if there were none.
    """

    accepted: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    newest_append_time_ms: int = 0


class Applier:
    """Applies the records of one topic to one cache. For one thread."""

    def __init__(self, topic: EventTopic, cache: MetadataCache, progress: Progress) -> None:
        self._topic = topic
        self._cache = cache
        self._progress = progress
        self._logged: set[tuple[str, str]] = set()

    def step(self, *, max_records: int, timeout_ms: int, partition_count: int) -> StepCounts:
        """Apply up to `max_records` records after waiting up to `timeout_ms` for them.

        `partition_count` is the topic's. Memory: the records and their changes. Raises the errors
        of the topic and the cache; in that case, it has applied no record.
        """
        records = self._topic.poll(max_records=max_records, timeout_ms=timeout_ms)
        positions = self._new_positions(records)
        if not records and not positions:
            return StepCounts()
        batch = _BatchFold(self._cache.overlay(), self._progress.awaited(), self._logged)
        batch.fold(records, partition_count)
        batch.overlay.commit(positions)
        self._progress.advance(positions, batch.newest_append_time_ms, batch.results)
        return StepCounts(
            accepted=batch.accepted,
            refused=batch.refused,
            skipped=batch.skipped,
            newest_append_time_ms=batch.newest_append_time_ms,
        )

    def _new_positions(self, records: Sequence[TopicRecord]) -> Mapping[int, ReadPosition]:
        last = {record.partition: record for record in records}
        before = self._progress.positions
        changed = {}
        for partition, offset in self._topic.positions().items():
            old = before.get(partition, _UNREAD)
            if offset == old.offset:
                continue
            record = last.get(partition)
            changed[partition] = ReadPosition(
                offset=offset,
                leader_epoch=record.leader_epoch if record else old.leader_epoch,
                append_time_ms=record.append_time_ms if record else old.append_time_ms,
            )
        return changed


class _BatchFold:
    """Folds one batch; has its counts and outcomes."""

    def __init__(
        self, overlay: Overlay, awaited: frozenset[bytes], logged: set[tuple[str, str]]
    ) -> None:
        self.overlay = overlay
        self.accepted = 0
        self.refused: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.results: dict[bytes, PublishResult] = {}
        self.newest_append_time_ms = 0
        self._awaited = awaited
        self._logged = logged

    def fold(self, records: Sequence[TopicRecord], partition_count: int) -> None:
        overlay, awaited = self.overlay, self._awaited
        for record in records:
            if is_misplaced(record.key, record.partition, partition_count):
                self._skip(record, MISPLACED, "its key belongs to another metadata partition")
                continue
            try:
                parsed = parse_record(record.key, record.value)
            except (CorruptError, UnsupportedError) as error:
                self._set_aside(record, error)
                continue
            refusal = fold(overlay, parsed, record)
            if refusal is None:
                self.accepted += 1
            else:
                self.refused[refusal.value] += 1
                self._log_once(record, logging.INFO, "refused", "refused", refusal.value)
            if awaited and (event_id := _event_id(parsed)) in awaited:
                self.results[event_id] = PublishResult(
                    refusal=refusal.value if refusal else None, append_time_ms=record.append_time_ms
                )
        times_ms = (record.append_time_ms for record in records)
        self.newest_append_time_ms = max(times_ms, default=0)

    def _set_aside(self, record: TopicRecord, error: CorruptError | UnsupportedError) -> None:
        """Skip and note an unreadable record; the note of a newer version blocks decisions."""
        needs = 0 if record.value is None else needed_fold_version(record.value)
        newer = needs > FOLD_VERSION
        note_unread(self.overlay, record, needs if newer else 0)
        reason = UNSUPPORTED if isinstance(error, UnsupportedError) else CORRUPT
        reason = NEWER_VERSION if newer else reason
        self._skip(record, reason, error.message, error)

    def _skip(
        self, record: TopicRecord, reason: str, kind: str, error: Exception | None = None
    ) -> None:
        self.skipped[reason] += 1
        self._log_once(record, logging.WARNING, "skipped", reason, kind, error)

    def _log_once(
        self,
        record: TopicRecord,
        level: int,
        outcome: str,
        reason: str,
        kind: str,
        error: Exception | None = None,
    ) -> None:
        if (reason, kind) in self._logged:
            return
        self._logged.add((reason, kind))
        _log.log(
            level,
            LogLine(
                f"{outcome} a metadata record: later ones of this kind are counted, but not logged",
                reason=reason,
                kind=kind,
                partition=record.partition,
                offset=record.offset,
                error=error,
            ),
        )


_UNREAD = ReadPosition(offset=0)


def _event_id(parsed: ParsedRecord) -> bytes:
    """Return the id of a record's event; empty for a tombstone."""
    if isinstance(parsed, Tombstone):
        return b""
    return parsed.event_id if isinstance(parsed, ParsedSegment) else parsed.event_id.bytes
