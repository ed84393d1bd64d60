"""The fold rules: how one record changes the known state.

Any record can be folded. Pure, except that it changes this state.

All processes that fold the same log have the same state. A fold of the compacted log gives the same
state as one of the full log, except for anomalies above their limit. The acceptance of a segment's
record depends only on claims, the partition's deletion and the segment's own records. Claims and
deletions stay, and a segment's records are removed together. Of other records, only superseded ones
are removed. A refused record has no effect except that the state keeps its key, so that its owner
can remove it. Each event's family (rlmm/events) has its rule; this is the list of all:

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
| loss accepted | by anyone, if its epoch or its offset is above what was accepted before |
| log start requested | by anyone, unless a known log start or request covers it |
| gaps | by the owner; the last record wins |
| offload requested | by anyone, unless below what was requested before |
| partition delete | by anyone, MARKED, then STARTED, then FINISHED |
| read lease, policy, policy level, pause, registration, secret | by anyone; the last one wins |
| anomaly | by anyone, up to a limit per partition; the last one wins |
| offload segment | by anyone; of one segment, the record of the furthest status counts |

A log start, a request of one, a trim and gaps belong to the epoch of their decision. If the lineage
has a later epoch that begins below them, they reach only to its start: an unclean election cut off
the log that they were decided for. A log start covers another if its offset and its epoch are
equal or higher; then the other can be removed (rlmm/state/log_starts.py).

Once a partition's deletion is marked, no copy begins there. Once it has finished, the state has
nothing else of the partition, and the fold refuses everything else about it permanently, because
the records of the deletion stay.

A tombstone of any record of a segment erases the whole segment, because compaction may already have
removed the others. A tombstone of a trim, log start or gaps only removes the key. So does a
tombstone of a log start request: it is written after the log starts there, when the state has
dropped the request. Claims may be removed after their partition's deletion has finished, because
they then have no effect.

For a record that needs newer rules, the state has only a note until the record is removed or
replaced. A cache that was folded by other rules is rebuilt.
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
    """The parsed key of a record without a value."""

    key: RecordKey


ParsedRecord = ParsedSegment | Tombstone | Event


def parse_record(key: bytes, value: bytes | None) -> ParsedRecord:
    """Parse a record. Raises CorruptError, or UnsupportedError if only a newer version knows it."""
    if value is None:
        return Tombstone(key=parse_record_key(key))
    if len(key) == SEGMENT_KEY_BYTES and key[0] == _SEGMENT:
        message = parse_value(value)
        if message.HasField("segment") and message.min_fold_version <= codec.FOLD_VERSION:
            return parse_segment(key, value, message)
    return codec.decode(key, value)


def fold(state: FoldState, parsed: ParsedRecord, record: TopicRecord) -> Refusal | None:
    """Apply a record to the state that results from all previous records of its partition.

    `parsed` is the same record, parsed. Returns the reason for a refusal, None if accepted. Raises
    only the errors of `state`.
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
    """Note a record that cannot be folded; 0 means that newer rules cannot fold it either.

    A tombstone of any kind leaves nothing to read.
    """
    if record.value is None:
        state.remove_unread_record(record.key)
    else:
        state.put_unread_record(record, needs_fold_version)
