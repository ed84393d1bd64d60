"""Removes the judged segments and orphans in bulk, on executors.

After a failure it checks the access to the store. If the store does not answer, the failures are an
outage, which does not count as an attempt of the dead letters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter
from rsm.layout.keys import ObjectKeys
from rsm.object_deletion import delete_segments
from rsm.segment.errors import TieredStorageError
from rsm.storage.chunk_storage import ChunkStorage
from spark_tools.repair.dead_letters import AnyDeadLetter
from spark_tools.repair.orphan_removal import REMOVED, Removal, remove_orphans
from spark_tools.repair.proof import Decision, Judgement
from spark_tools.repair.rulings import DeadLetterLocation


def remove(
    storage: ChunkStorage,
    judged: Mapping[DeadLetterLocation, tuple[AnyDeadLetter, Judgement]],
    keys: ObjectKeys,
) -> dict[DeadLetterLocation, Removal]:
    """Remove what may be deleted; return the results. Never raises."""
    segments: dict[DeadLetterLocation, DeadLetter] = {}
    orphans: dict[DeadLetterLocation, OrphanDeadLetter] = {}
    for location, (dead_letter, judgement) in judged.items():
        if judgement.decision not in (Decision.DELETE, Decision.SWEEP):
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
        outage = f"the store cannot be reached: {error}"
        return removals | {
            location: replace(each, outage=outage) for location, each in failed.items()
        }
    return removals
