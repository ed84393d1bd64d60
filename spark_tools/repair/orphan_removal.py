"""Deletes orphans or moves them into quarantine, on executors.

Directly before that, it looks at each object again and skips one that has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment
from rsm.layout.keys import ObjectKeys
from rsm.segment.errors import (
    AlreadyExistsError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
)
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkInfo, ChunkStorage
from spark_tools.quarantine import quarantined_name

_READ_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The result for one dead letter's objects; all fields are empty if they do not exist any more.

    `refusal`: the object is not the one that was seen. `failure`: the store's error. `outage`: the
    store does not answer at all.
    """

    refusal: str = ""
    failure: str = ""
    outage: str = ""


REMOVED = Removal()


def remove_orphans(
    storage: ChunkStorage, dead_letters: Sequence[OrphanDeadLetter], keys: ObjectKeys
) -> list[Removal]:
    """Return a result per dead letter, in order; an absent object is done. Never raises."""
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
    """Return None if the object may be deleted now."""
    try:
        found = storage.info(dead_letter.object_key)
        seen = (dead_letter.length_bytes, dead_letter.last_modified_ms)
        if (found.length_bytes, found.last_modified_ms) != seen:
            return Removal(refusal="it is not the object that was seen")
        if dead_letter.treatment is OrphanTreatment.QUARANTINE:
            _copy(storage, found, quarantined_name(keys, dead_letter.object_key))
    except NotFoundError:
        return REMOVED
    except TieredStorageError as error:
        return Removal(failure=str(error))
    return None


def _copy(storage: ChunkStorage, found: ChunkInfo, target: str) -> None:
    """Copy an object with its attributes, which a ledger's object needs."""
    source = _StoredSource(storage=storage, name=found.name, length_bytes=found.length_bytes)
    try:
        storage.create_with_content(target, source, attributes=found.attributes)
    except AlreadyExistsError as error:
        # An earlier attempt created it completely: chunks are created atomically.
        there = storage.info(target)
        if (there.length_bytes, there.attributes) != (found.length_bytes, found.attributes):
            raise RetriableError("another object is in quarantine", name=target) from error


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
    """A stored object as the content of another one. Memory: _READ_BYTES."""

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
