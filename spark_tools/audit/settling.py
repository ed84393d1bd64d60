"""Confirms suspected findings by a second look and newer metadata; examines the segments.

Memory: the segments of up to 64 partitions, and all findings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from rsm.layout.keys import ObjectKeys
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.storage.chunk_storage import ChunkInfo
from spark_tools.audit.findings import Finding, FindingKind
from spark_tools.audit.key_ranges import ExpectedObject, expected_objects
from spark_tools.audit.objects import Age, confirmed
from spark_tools.audit.orphan_dead_letters import Orphan
from spark_tools.audit.segments import PartitionRecords, examine
from spark_tools.audit.totals import TopicTotals, TotalsByTopic
from spark_tools.orphan_proof import PartitionKnowledge, why_not_removable
from spark_tools.quarantine import parse_either
from spark_tools.snapshot import MetadataSnapshot

_REMEMBERED_PARTITIONS = 64
_DAMAGES = frozenset(
    each.value for each in (FindingKind.MISSING, FindingKind.SIZE, FindingKind.CHECKSUM)
)
_MAY_BE_NEEDED = (
    "other objects of the partition are missing or damaged: this one may be the only copy"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledFindings:
    """Represents an audit's findings, its totals and its orphans."""

    findings: tuple[Finding, ...]
    totals: tuple[TopicTotals, ...]
    orphans: tuple[Orphan, ...]


def settle(
    metadata: MetadataSnapshot,
    suspicions: Sequence[Finding],
    sightings: Mapping[str, ChunkInfo],
    age: Age,
    keys: ObjectKeys,
) -> SettledFindings:
    """Return findings, totals and orphans according to the current metadata.

    Raises CorruptError, RetriableError.
    """
    totals, known = TotalsByTopic(), dict[str, ExpectedObject]()
    findings: list[Finding] = []
    suspected = {each.object_key for each in suspicions}
    every = metadata.every_segment()
    for tip, records in groupby(every, key=lambda each: each.metadata.topic_id_partition):
        partition = PartitionRecords(
            topic_id_partition=tip,
            state=metadata.partition_state(tip),
            segments=tuple(records),
        )
        findings += examine(partition, cut_off_ms=age.cut_off_ms)
        known |= _known(partition, suspected)
        for record in partition.segments:
            totals.add(record.metadata)
    looked_at = (
        confirmed(each, sightings.get(each.object_key), known.get(each.object_key), age)
        for each in suspicions
    )
    proved = [finding for finding in looked_at if finding is not None]
    damaged = {(each.topic, each.partition) for each in proved if each.kind in _DAMAGES}
    orphans: list[Orphan] = []
    # A small cache suffices, because the orphans of a partition are adjacent.
    knowledge = lru_cache(_REMEMBERED_PARTITIONS)(metadata.knowledge)
    for finding in proved:
        orphan = _orphan(finding, sightings.get(finding.object_key), keys, knowledge)
        if orphan is None:
            findings.append(finding)
            continue
        tip = orphan.topic_id_partition
        if not orphan.why_kept and (tip.topic, tip.partition) in damaged:
            orphan = replace(orphan, why_kept=_MAY_BE_NEEDED)
        orphans.append(orphan)
        detail = f"{finding.detail}; {orphan.why_kept or 'removable'}"
        findings.append(replace(finding, detail=detail))
    findings.sort(key=lambda each: (each.kind, each.object_key))
    return SettledFindings(
        findings=tuple(findings), totals=totals.totals(findings), orphans=tuple(orphans)
    )


def _known(partition: PartitionRecords, suspected: Collection[str]) -> dict[str, ExpectedObject]:
    """Return all objects of the undeleted segments that own a suspected object, by name."""
    living = (
        each.metadata
        for each in partition.segments
        if each.metadata.state is not SegmentState.DELETE_SEGMENT_FINISHED
        and any(stored.key in suspected for stored in each.metadata.objects)
    )
    return {each.key: each for each in expected_objects(living)}


def _orphan(
    finding: Finding,
    found: ChunkInfo | None,
    keys: ObjectKeys,
    knowledge: Callable[[TopicIdPartition], PartitionKnowledge],
) -> Orphan | None:
    """Return the orphan of a finding; None if the finding is of another kind."""
    if finding.kind not in (FindingKind.ORPHAN.value, FindingKind.QUARANTINED.value):
        return None
    name = parse_either(keys, finding.object_key)
    if name is None or found is None:
        return None
    tip = name.segment_id.topic_id_partition
    return Orphan(
        found=found,
        topic_id_partition=tip,
        is_quarantined=finding.kind == FindingKind.QUARANTINED.value,
        why_kept=why_not_removable(finding.object_key, name, knowledge(tip)),
    )
