"""Removes the objects of segments and orphans in bulk, as decided. Runs on executors.

After a failure, this module checks whether it can use the store at all. If not, the failures count
as an outage, and not as attempts to delete the objects.

This module deletes orphans or moves them to quarantine. Directly before that, it checks each object
again, and refuses to remove it if it has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment
from rsm.layout.keys import ObjectKeys
from rsm.object_deletion import delete_segments
from rsm.segment.errors import (
    AlreadyExistsError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
)
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkInfo, ChunkStorage
from spark_tools.quarantine import quarantined_name
from spark_tools.repair.batch_decisions import DeadLetterLocation
from spark_tools.repair.dead_letters import AnyDeadLetter
from spark_tools.repair.proof import Decision, RepairAction

_READ_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Represents the result of removing a dead letter's objects; all fields are empty on success.

    `refusal` is set if the object is not the one that the audit saw. `failure` is the store's
    error. `outage` is set if the store cannot be used at all.
    """

    refusal: str = ""
    failure: str = ""
    outage: str = ""


REMOVED = Removal()


def remove(
    storage: ChunkStorage,
    decided: Mapping[DeadLetterLocation, tuple[AnyDeadLetter, Decision]],
    keys: ObjectKeys,
) -> dict[DeadLetterLocation, Removal]:
    """Remove the objects that may be deleted; return the results. Raises no TieredStorageError."""
    segments: dict[DeadLetterLocation, DeadLetter] = {}
    orphans: dict[DeadLetterLocation, OrphanDeadLetter] = {}
    for location, (dead_letter, decision) in decided.items():
        if decision.action not in (RepairAction.DELETE, RepairAction.DELETE_OBJECTS):
            continue
        if isinstance(dead_letter, OrphanDeadLetter):
            orphans[location] = dead_letter
        else:
            segments[location] = dead_letter
    failures = delete_segments(storage, [dead_letter.metadata for dead_letter in segments.values()])
    removed = remove_orphans(storage, list(orphans.values()), keys)
    found = {
        location: next((Removal(failure=f"{key}: {why}") for key, why in each.items()), REMOVED)
        for location, each in zip(segments, failures, strict=True)
    }
    return _without_blame(storage, found | dict(zip(orphans, removed, strict=True)))


def _without_blame(
    storage: ChunkStorage, removals: dict[DeadLetterLocation, Removal]
) -> dict[DeadLetterLocation, Removal]:
    failed = {location: each for location, each in removals.items() if each.failure}
    if not failed:
        return removals
    try:
        storage.check_access()
    except TieredStorageError as error:
        outage = f"the store cannot be used: {error}"
        return removals | {
            location: replace(each, outage=outage) for location, each in failed.items()
        }
    return removals


def remove_orphans(
    storage: ChunkStorage, dead_letters: Sequence[OrphanDeadLetter], keys: ObjectKeys
) -> list[Removal]:
    """Remove the objects; return a result per dead letter, in order.

    An absent object counts as removed. Raises no TieredStorageError.
    """
    prepared = {
        dead_letter.object_key: _prepared(storage, dead_letter, keys)
        for dead_letter in dead_letters
    }
    names = [name for name, removal in prepared.items() if removal is None]
    results = {name: removal for name, removal in prepared.items() if removal is not None}
    results |= _deleted(storage, names)
    return [results[dead_letter.object_key] for dead_letter in dead_letters]


def _prepared(
    storage: ChunkStorage, dead_letter: OrphanDeadLetter, keys: ObjectKeys
) -> Removal | None:
    """Prepare the deletion of an orphan; return None if it may be deleted now, else the result."""
    try:
        found = storage.info(dead_letter.object_key)
        seen = (dead_letter.length_bytes, dead_letter.last_modified_ms)
        if (found.length_bytes, found.last_modified_ms) != seen:
            return Removal(refusal="the object is not the one that the audit saw")
        if dead_letter.treatment is OrphanTreatment.QUARANTINE:
            _copy(storage, found, quarantined_name(keys, dead_letter.object_key))
    except NotFoundError:
        return REMOVED
    except TieredStorageError as error:
        return Removal(failure=str(error))
    return None


def _copy(storage: ChunkStorage, found: ChunkInfo, target: str) -> None:
    """Copy an object with its attributes, which readers of ledgers need."""
    source = _StoredSource(storage=storage, name=found.name, length_bytes=found.length_bytes)
    try:
        storage.create_with_content(target, source, attributes=found.attributes)
    except AlreadyExistsError as error:
        # If an earlier attempt created the target, it is complete: chunks are created atomically.
        there = storage.info(target)
        if (there.length_bytes, there.attributes) != (found.length_bytes, found.attributes):
            raise RetriableError(
                "cannot copy the object to quarantine: another object has the name", name=target
            ) from error


def _deleted(storage: ChunkStorage, names: Sequence[str]) -> dict[str, Removal]:
    if not names:
        return {}
    try:
        outcomes = storage.delete_many(names)
    except TieredStorageError as error:
        return dict.fromkeys(names, Removal(failure=str(error)))
    return {
        each.name: REMOVED if each.error is None else Removal(failure=f"{each.name}: {each.error}")
        for each in outcomes
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredSource:
    """Reads a stored object as the content of a new one. Memory: _READ_BYTES."""

    storage: ChunkStorage
    name: str
    length_bytes: int

    def chunks(self) -> Iterator[memoryview]:
        for start in range(0, self.length_bytes, _READ_BYTES):
            end = min(start + _READ_BYTES, self.length_bytes)
            data = self.storage.read_range(
                self.name, ByteRange(start_position=start, end_position=end)
            )
            yield memoryview(data)
