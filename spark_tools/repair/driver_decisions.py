"""Decides on a batch's dead letters from the metadata. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import pyarrow as pa

from rlmm.dead_letters.orphan_dead_letter import KEY_PREFIX, OrphanDeadLetter
from rlmm.record_keys import (
    PARTITION_SUBJECT_BYTES,
    SEGMENT_SUBJECT_BYTES,
    segment_subject,
    subject_partition_number,
)
from rsm.layout.keys import ObjectKeys, segment_prefix
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from spark_tools.repair.batch_decisions import BatchDecisions, DeadLetterLocation
from spark_tools.repair.dead_letters import UnreadableDeadLetter, read_dead_letter
from spark_tools.repair.orphan_decisions import OrphanDecider, OrphanTerms
from spark_tools.repair.proof import Decision, MetadataSource, RepairAction
from spark_tools.snapshot import MetadataSnapshot

_DELETED = (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED)
_SUPERSEDED = Decision(action=RepairAction.SUPERSEDED)

_HAS_SEGMENTS_KEY = (
    f"length(key) = {SEGMENT_SUBJECT_BYTES}"
    f" AND substring(key, 1, {len(KEY_PREFIX)}) <> X'{KEY_PREFIX.hex()}'"
)
ASKED_COLUMNS = (
    "partition",
    "offset",
    "key",
    # A segment's key is sufficient; any other dead letter is decoded on the driver.
    f"CASE WHEN {_HAS_SEGMENTS_KEY} THEN NULL ELSE value END AS value",
)
"""The columns that the driver reads, as SQL over the columns of Spark's Kafka source."""

FindMisplaced = Callable[[BatchDecisions, Collection[bytes]], Collection[DeadLetterLocation]]
"""Finds records with one of these keys that are not valid dead letters of the key's segment."""


def decide_on_batch(
    dead_letters: Iterable[pa.RecordBatch],
    metadata: MetadataSnapshot,
    orphans: OrphanTerms,
    find_misplaced: FindMisplaced,
) -> BatchDecisions:
    """Decide on dead letters with ASKED_COLUMNS; the last one of each subject counts.

    Of the dead letters about a segment, the last valid one counts. If several records have the
    segment's key, `find_misplaced` finds the invalid ones. Raises RetriableError if the metadata
    cannot be read to its end in time. Memory and time grow with the number of keys and of dead
    letters about orphans.
    """
    first: dict[bytes, DeadLetterLocation] = {}
    repeated: dict[bytes, list[DeadLetterLocation]] = {}
    orphan_dead_letters: dict[DeadLetterLocation, OrphanDeadLetter] = {}
    for location, subject, orphan in _received(dead_letters):
        if first.setdefault(subject, location) != location:
            repeated.setdefault(subject, [first[subject]]).append(location)
        if orphan is not None:
            orphan_dead_letters[location] = orphan
    latest = {
        subject: max(repeated.get(subject, (location,))) for subject, location in first.items()
    }
    about_orphans = {
        subject: orphan_dead_letters[location]
        for subject, location in latest.items()
        if location in orphan_dead_letters
    }
    segments = [subject for subject in latest if subject not in about_orphans]
    known = {each: _partition(each) for each in {s[:PARTITION_SUBJECT_BYTES] for s in segments}}
    named = map(orphans.partition_of, about_orphans.values())
    metadata.catch_up({*known.values(), *(each for each in named if each is not None)})
    source = MetadataSource(
        topic_id=metadata.identity.topic_id,
        partition_count=metadata.identity.partition_count,
        positions=metadata.positions(),
        unread=metadata.unread_records(),
    )
    decide_on_orphan = OrphanDecider(metadata, source, orphans).decide
    decided = {latest[subject]: decide_on_orphan(each) for subject, each in about_orphans.items()}
    newer = {subject: metadata.newer_record(each) for subject, each in known.items()}
    leases = {subject: metadata.active_leases(each) for subject, each in known.items()}
    states = metadata.segment_states(segments)
    listed, counts = _objects_of(metadata, states, orphans.keys)
    decisions = BatchDecisions(
        keys=orphans.keys,
        source=source,
        states=states,
        newer={subject: each.needs_fold_version for subject, each in newer.items() if each},
        leases={subject: each for subject, each in leases.items() if each},
        listed=listed,
        objects_count=counts,
        decided=decided,
    )
    keys = [subject for subject in repeated if subject not in about_orphans]
    misplaced = frozenset(find_misplaced(decisions, keys)) if keys else frozenset()
    return replace(decisions, decided=decided | _superseded(repeated.values(), misplaced))


def _superseded(
    repeated: Iterable[Sequence[DeadLetterLocation]], misplaced: Collection[DeadLetterLocation]
) -> dict[DeadLetterLocation, Decision]:
    """Return a decision for each valid dead letter that a later one of its subject supersedes."""
    found: dict[DeadLetterLocation, Decision] = {}
    for locations in repeated:
        in_order = sorted(location for location in locations if location not in misplaced)
        found |= dict.fromkeys(in_order[:-1], _SUPERSEDED)
    return found


def _objects_of(
    metadata: MetadataSnapshot, states: Mapping[bytes, SegmentState | None], keys: ObjectKeys
) -> tuple[dict[bytes, frozenset[str]], dict[bytes, int]]:
    """Return the object names of deleted segments that do not contain the segment's id.

    Also returns the number of objects of each deleted segment.
    """
    prefixes: dict[bytes, str] = {}
    found: dict[bytes, frozenset[str]] = {}
    counts: dict[bytes, int] = {}
    deleted = (subject for subject, state in states.items() if state in _DELETED)
    for subject, named in metadata.objects_named(deleted):
        counts[subject] = len(named.names)
        of_partition = subject[:PARTITION_SUBJECT_BYTES]
        if of_partition not in prefixes:
            partition = replace(_partition(subject), topic=named.topic)
            prefixes[of_partition] = keys.partition_prefix(partition)
        segment_id = UUID(bytes=subject[PARTITION_SUBJECT_BYTES:])
        own = segment_prefix(prefixes[of_partition], named.base_offset, segment_id)
        odd = [name for name in named.names if not name.startswith(own)]
        if unnamed := frozenset(name for name in odd if keys.parse(name) is None):
            found[subject] = unnamed
    return found, counts


def _received(
    dead_letters: Iterable[pa.RecordBatch],
) -> Iterator[tuple[DeadLetterLocation, bytes, OrphanDeadLetter | None]]:
    """Yield each dead letter's location and subject, and the dead letter itself if about an orphan.

    If there is no value, the key is a segment's subject. Skips unreadable dead letters.
    """
    names = ("partition", "offset", "key", "value")
    for batch in dead_letters:
        columns = [batch.column(name).to_pylist() for name in names]
        for partition, offset, key, value in zip(*columns, strict=True):
            if value is None:
                yield (partition, offset), key, None
                continue
            dead_letter = read_dead_letter(key, value)
            if isinstance(dead_letter, OrphanDeadLetter):
                yield (partition, offset), KEY_PREFIX + dead_letter.object_key.encode(), dead_letter
            elif not isinstance(dead_letter, UnreadableDeadLetter):
                yield (partition, offset), segment_subject(dead_letter.metadata.segment_id), None


def _partition(subject: bytes) -> TopicIdPartition:
    """Return a subject's partition, with `-` for the topic's name, which a subject lacks."""
    topic_id, number = UUID(bytes=subject[:16]), subject_partition_number(subject)
    return TopicIdPartition(topic_id=topic_id, topic="-", partition=number)
