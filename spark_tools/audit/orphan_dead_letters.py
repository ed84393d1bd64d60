"""Represents the orphans of an audit and builds the dead letters for repair. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment
from rlmm.partitioner import metadata_partition
from rlmm.positions import MetadataPosition, TopicIdentity
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import TopicIdPartition
from rsm.storage.chunk_storage import ChunkInfo

TREATED_ORPHANS = JsonShape(
    name="TreatedOrphans",
    meaning="The orphans that `--delete` or `--quarantine` asks `rlm-repair` to treat.",
    fields={
        "treatment": JsonField(JsonKind.TEXT, "`delete` or `quarantine`."),
        "requested": JsonField(
            JsonKind.FLAG, "Whether dead letters were written; false with `--dry-run`."
        ),
        "objects": JsonField(JsonKind.COUNT, "The number of objects to delete or quarantine."),
        "bytes": JsonField(JsonKind.BYTES, "The size of these objects."),
        "kept": JsonField(
            JsonKind.COUNT,
            "Orphans that are not treated, because the [proof](spark.md#orphans) is incomplete.",
        ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """Represents an object that the metadata does not name; `found` is from the second listing.

    `why_kept` is the reason not to remove the object; empty if it may be removed.
    """

    found: ChunkInfo
    topic_id_partition: TopicIdPartition
    is_quarantined: bool
    why_kept: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """Represents the wall-clock times of both listings of the store, and of the metadata read."""

    first_ms: int
    last_ms: int
    topic: TopicIdentity
    positions: Mapping[int, int]


def to_be_treated(orphans: Iterable[Orphan], treatment: OrphanTreatment) -> list[Orphan]:
    """Return the removable orphans, except those in quarantine if the treatment is quarantine."""
    return [
        each
        for each in orphans
        if not each.why_kept
        and not (each.is_quarantined and treatment is OrphanTreatment.QUARANTINE)
    ]


def orphan_dead_letters(
    orphans: Iterable[Orphan], treatment: OrphanTreatment, seen: Sightings
) -> list[OrphanDeadLetter]:
    """Return a dead letter for each orphan that is to be treated."""
    dead_letters = []
    for each in to_be_treated(orphans, treatment):
        partition = metadata_partition(each.topic_id_partition, seen.topic.partition_count)
        read_to = MetadataPosition(partition=partition, offset=seen.positions.get(partition, 0))
        dead_letters.append(
            OrphanDeadLetter(
                object_key=each.found.name,
                length_bytes=each.found.length_bytes,
                last_modified_ms=each.found.last_modified_ms,
                first_seen_ms=seen.first_ms,
                last_seen_ms=max(seen.last_ms, seen.first_ms + 1),
                treatment=treatment,
                read_to=read_to,
                metadata_topic_id=seen.topic.topic_id,
            )
        )
    return dead_letters


def treated_json(
    treatment: OrphanTreatment,
    orphans: Iterable[Orphan],
    dead_letters: Collection[OrphanDeadLetter],
    *,
    is_requested: bool,
) -> dict[str, object]:
    """Return the report about orphans; `TREATED_ORPHANS` describes it."""
    return {
        "treatment": treatment.value,
        "requested": is_requested,
        "objects": len(dead_letters),
        "bytes": sum(each.length_bytes for each in dead_letters),
        "kept": sum(bool(each.why_kept) for each in orphans),
    }
