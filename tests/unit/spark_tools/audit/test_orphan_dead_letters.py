from __future__ import annotations

import pytest

from rlmm.dead_letters.orphan_dead_letter import OrphanTreatment
from rlmm.partitioner import metadata_partition
from rlmm.positions import TopicIdentity
from rsm.storage.chunk_storage import ChunkInfo
from spark_tools.audit.orphan_dead_letters import Orphan, Sightings, orphan_dead_letters
from tests.metadata_builder import ORDERS

TOPIC = TopicIdentity(cluster_id="c", topic_id="t", partition_count=7)
PARTITION = metadata_partition(ORDERS, 7)
SEEN = Sightings(first_ms=5_000, last_ms=6_000, topic=TOPIC, positions={PARTITION: 42})


def orphan(name: str, *, is_quarantined: bool = False, why_kept: str = "") -> Orphan:
    return Orphan(
        found=ChunkInfo(name=name, length_bytes=3, last_modified_ms=1_000),
        topic_id_partition=ORDERS,
        is_quarantined=is_quarantined,
        why_kept=why_kept,
    )


def test_dead_letters_when_orphans_are_dead_then_each_says_what_was_seen_and_read() -> None:
    """R22: the two sightings, and the position up to which the metadata was read."""
    (dead_letter,) = orphan_dead_letters([orphan("a")], OrphanTreatment.DELETE, SEEN)

    assert (dead_letter.object_key, dead_letter.length_bytes, dead_letter.last_modified_ms) == (
        "a",
        3,
        1_000,
    )
    assert (dead_letter.first_seen_ms, dead_letter.last_seen_ms) == (5_000, 6_000)
    assert (dead_letter.read_to.partition, dead_letter.read_to.offset) == (PARTITION, 42)
    assert dead_letter.metadata_topic_id == "t"


@pytest.mark.parametrize(
    ("treatment", "names"),
    [(OrphanTreatment.DELETE, ["a", "b"]), (OrphanTreatment.QUARANTINE, ["a"])],
)
def test_dead_letters_when_some_are_alive_or_in_quarantine_then_not_of_these(
    treatment: OrphanTreatment, names: list[str]
) -> None:
    """Scenario 84 and R22."""
    orphans = [orphan("a"), orphan("b", is_quarantined=True), orphan("c", why_kept="alive")]

    dead_letters = orphan_dead_letters(orphans, treatment, SEEN)

    assert [each.object_key for each in dead_letters] == names
