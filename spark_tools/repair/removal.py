"""Removes what letters were judged to be about, segments and orphans in bulk. On executors.

Where something could not be removed, the store is asked whether it can be reached at all: if not,
no letter is to blame, and what the outage lasts is no attempt of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.dead_letters.orphan_letter import OrphanLetter
from rsm.layout.keys import ObjectKeys
from rsm.segment.errors import TieredStorageError
from rsm.storage.chunk_storage import ChunkStorage
from spark_tools.repair.deletion import delete_segments
from spark_tools.repair.letters import Letter
from spark_tools.repair.orphan_removal import REMOVED, Removal, remove_orphans
from spark_tools.repair.proof import Judgement, Verdict
from spark_tools.repair.rulings import LetterPlace


def remove(
    storage: ChunkStorage,
    judged: Mapping[LetterPlace, tuple[Letter, Judgement]],
    keys: ObjectKeys,
) -> dict[LetterPlace, Removal]:
    """What became of those that may be deleted. Never raises."""
    segments: dict[LetterPlace, DeadLetter] = {}
    orphans: dict[LetterPlace, OrphanLetter] = {}
    for place, (letter, judgement) in judged.items():
        if judgement.verdict not in (Verdict.DELETE, Verdict.SWEEP):
            continue
        if isinstance(letter, OrphanLetter):
            orphans[place] = letter
        else:
            segments[place] = letter
    failures = delete_segments(storage, [letter.metadata for letter in segments.values()])
    removed = remove_orphans(storage, list(orphans.values()), keys)
    found = {
        place: Removal(failure=failure) if failure else REMOVED
        for place, failure in zip(segments, failures, strict=True)
    }
    return _without_blame(storage, found | dict(zip(orphans, removed, strict=True)))


def _without_blame(
    storage: ChunkStorage, removals: dict[LetterPlace, Removal]
) -> dict[LetterPlace, Removal]:
    failed = {place: each for place, each in removals.items() if each.failure}
    if not failed:
        return removals
    try:
        storage.check_access()
    except TieredStorageError as error:
        outage = f"the store can't be reached: {error}"
        return removals | {place: replace(each, outage=outage) for place, each in failed.items()}
    return removals
