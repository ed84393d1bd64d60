"""Defines the fold rules: how one record changes the known state.

No parsed record makes the fold fail. A fold changes only this state.

All processes that fold the same log have the same state. A fold of the compacted log results in the
same state as a fold of the full log, except for anomalies above their limit. The acceptance of a
segment's record depends only on claims, the partition's deletion and the segment's own records.
Claims and deletions stay, and a segment's records are removed together. The owner removes other
records only when they are superseded or expired. A refused record has no effect, but the state
keeps its key, so that the owner can remove the record. The families (rlmm/events) implement these
rules:

| record | accepted |
|---|---|
| claim | unless its epoch is older than the owner's; the last of the highest epoch owns |
| COPY_SEGMENT_STARTED | from nothing |
| COPY_SEGMENT_FINISHED | from nothing or STARTED, not later than the copy's deadline |
| DELETE_SEGMENT_STARTED | by the owner, from STARTED or FINISHED, if it expects that state |
| DELETE_SEGMENT_FINISHED | from DELETE_SEGMENT_STARTED, by anyone |
| dead-lettered | in DELETE_SEGMENT_STARTED, by anyone |
| trim | by the owner, unless another known trim covers it |
| log start | by the owner, unless another known log start covers it |
| loss accepted | by anyone, if its epoch or offset is above the highest accepted before |
| log start requested | by anyone, unless a known log start or request covers it |
| gaps | by the owner; the last record wins |
| offload requested | by anyone, unless its offset is below the offset requested before |
| partition delete | by anyone, MARKED, then STARTED, then FINISHED |
| read lease, policy, policy level, pause, registration, secret | by anyone; the last one wins |
| anomaly | by anyone, up to a limit per partition; the last one wins |
| offload segment | by anyone; the record with a segment's furthest status counts |

A log start, a log start request, a trim and gaps belong to the epoch of their decision. If a
later epoch of the lineage begins below them, they reach only to the start of that epoch: an
unclean election cut off the log that they were decided for. A log start covers another if its
offset and its epoch are equal or higher; then the other can be removed (rlmm/state/log_starts.py).

Once a partition's deletion is marked, no copy begins there. Once it has finished, the state
contains nothing else about the partition. The records of the deletion stay, so the fold refuses all
other records about the partition permanently.

A tombstone of any record of a segment erases the whole segment, because compaction may already have
removed the others. A tombstone of a trim, log start, gaps, offload request or accepted
loss removes only the key. So does a tombstone of a log start request: the owner writes it after a
log start covers the request, when the state no longer contains the request. Claims may be removed
after their partition's deletion has finished, because they then have no effect.

For a record that only newer rules can fold, the state contains only a note until the record is
removed or replaced. A cache that was folded by other rules is rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlmm import codec
from rlmm.events.event import Event, parse_value
from rlmm.events.fold_state import FoldState, Refusal
from rlmm.events.parsed_segment import SEGMENT_KEY_BYTES, ParsedSegment, parse_segment
from rlmm.events.registry import SEGMENTS, family_of, family_of_kind
from rlmm.positions import TopicRecord
from rlmm.record_keys import RecordKey, RecordKind, parse_record_key

_SEGMENT = int(RecordKind.SEGMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """Represents a record without a value, by its parsed key."""

    key: RecordKey


ParsedRecord = ParsedSegment | Tombstone | Event


def parse_record(key: bytes, value: bytes | None) -> ParsedRecord:
    """Parse a record.

    Raises CorruptError, and UnsupportedError if only a newer version knows the record.
    """
    if value is None:
        return Tombstone(key=parse_record_key(key))
    if len(key) == SEGMENT_KEY_BYTES and key[0] == _SEGMENT:
        message = parse_value(value)
        if message.HasField("segment") and message.min_fold_version <= codec.FOLD_VERSION:
            return parse_segment(key, value, message)
    return codec.decode(key, value)


def fold(state: FoldState, parsed: ParsedRecord, record: TopicRecord) -> Refusal | None:
    """Apply a record to the state that results from all previous records of its partition.

    `parsed` is the same record after `parse_record`. Returns the reason for a refusal, or None if
    the record is accepted. Raises only the errors of `state`.
    """
    if isinstance(parsed, ParsedSegment):
        return SEGMENTS.fold(state, parsed, record)
    if isinstance(parsed, Tombstone):
        state.remove_unread_record(record.key)
        return family_of_kind(parsed.key.kind).fold_tombstone(state, parsed.key)
    family = family_of(parsed)
    if family.reuses_keys:
        state.remove_unread_record(record.key)
    return family.fold(state, parsed, record)


def note_unread(state: FoldState, record: TopicRecord, needs_fold_version: int) -> None:
    """Note an unreadable record, with the newer fold version that it names, or 0.

    An unreadable tombstone removes the note of its key, because no value is left to read.
    """
    if record.value is None:
        state.remove_unread_record(record.key)
    else:
        state.put_unread_record(record, needs_fold_version)
