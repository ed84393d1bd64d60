"""Removals from a store that is unreachable, or that refuses them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rlmm.dead_letters.dead_letter import DeadLetter, encode
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment
from rlmm.positions import MetadataPosition
from rsm.layout.keys import ObjectKeys
from rsm.segment.errors import RetriableError
from rsm.storage.chunk_storage import ChunkStorage, DeleteOutcome
from rsm.storage.memory import MemoryChunkStorage
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper
from spark_tools.repair.batch_decisions import DeadLetterLocation
from spark_tools.repair.dead_letters import AnyDeadLetter
from spark_tools.repair.outcomes import OutcomeTopics, ReceivedDeadLetter, outcome_of
from spark_tools.repair.proof import Decision, RepairAction
from spark_tools.repair.removal import remove
from tests.metadata_builder import DELETE_STARTED, segment_metadata

PROVED = Decision(action=RepairAction.DELETE)
TOPICS = OutcomeTopics(
    metadata_topic="metadata",
    metadata_partition_count=7,
    dead_letter_topic="letters",
    parking_topic="parked",
    max_attempts=1,
)
SEGMENT = DeadLetter(
    metadata=segment_metadata(1, state=DELETE_STARTED),
    reason="refused",
    attempts=5,
    first_attempt_ms=1,
    last_attempt_ms=2,
)
ORPHAN = OrphanDeadLetter(
    object_key="orphan",
    length_bytes=4,
    last_modified_ms=1,
    first_seen_ms=8_000,
    last_seen_ms=9_000,
    treatment=OrphanTreatment.DELETE,
    read_to=MetadataPosition(partition=0, offset=1),
    metadata_topic_id="t",
)


class Refusing(ChunkStorageWrapper):
    """Refuses deletions like S3, and counts the checks of its access."""

    def __init__(self, inner: ChunkStorage, *, is_reachable: bool) -> None:
        super().__init__(inner)
        self._is_reachable = is_reachable
        self.asked_count = 0

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        return tuple(DeleteOutcome(name=name, error=RetriableError("refused")) for name in names)

    def check_access(self) -> None:
        self.asked_count += 1
        if not self._is_reachable:
            raise RetriableError("no answer")


@pytest.fixture
def inner() -> MemoryChunkStorage:
    return MemoryChunkStorage(wall_ms=lambda: 1)


def decided(
    *dead_letters: AnyDeadLetter,
) -> dict[DeadLetterLocation, tuple[AnyDeadLetter, Decision]]:
    return {(0, offset): (dead_letter, PROVED) for offset, dead_letter in enumerate(dead_letters)}


@pytest.mark.parametrize(("is_reachable", "outcome"), [(True, "given_up"), (False, "waiting")])
def test_remove_when_the_store_is_out_of_reach_then_it_is_no_attempt_of_a_letter(
    inner: MemoryChunkStorage, outcome: str, *, is_reachable: bool
) -> None:
    """Otherwise an outage during some batches would park every dead letter."""
    storage = Refusing(inner, is_reachable=is_reachable)
    encoded = encode(SEGMENT)
    received = ReceivedDeadLetter(
        location=(0, 0), key=encoded.key, value=encoded.value, dead_letter=SEGMENT
    )

    removals = remove(storage, decided(SEGMENT, SEGMENT, ORPHAN), ObjectKeys())

    assert storage.asked_count == 1
    assert not removals[0, 2].failure  # the orphan does not exist
    found = outcome_of(received, SEGMENT, PROVED, removals[0, 0], TOPICS, 9)
    assert (found.name, "refused" in found.reason) == (outcome, is_reachable)
    assert found.record is not None
    assert (found.record.topic, found.record.value) == (
        "parked" if is_reachable else "letters",
        encoded.value,
    )


def test_remove_when_all_is_removed_then_nobody_asks_whether_the_store_is_there(
    inner: MemoryChunkStorage,
) -> None:
    storage = Refusing(inner, is_reachable=False)

    removals = remove(storage, decided(ORPHAN), ObjectKeys())

    assert (list(removals), storage.asked_count) == ([(0, 0)], 0)
