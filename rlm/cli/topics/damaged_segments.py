"""Lists damaged segments for `rlm topic resolve`, each with the command that gives it up.

An id may begin with "-", so the command joins it to the option with "=".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rlm.cli.invocation.amounts import iso_time
from rlm.policy.anomalies import open_anomalies
from rlm.status.document_parts import ANOMALY, anomaly_to_json
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.partition_state import PartitionState
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import id_to_text
from rsm.segment.metadata import RemoteLogSegmentMetadata

DAMAGED_SEGMENT = JsonShape(
    name="DamagedSegment",
    meaning="A stored segment with damaged objects.",
    fields={
        "segment_id": JsonField(JsonKind.ID, "The segment's id."),
        "start_offset": JsonField(JsonKind.OFFSET, "Its first offset."),
        "end_offset": JsonField(JsonKind.OFFSET, "The offset after its last one."),
        "anomalies": JsonField(ANOMALY, "Its damaged objects.", is_list=True),
        "loss_accepted": JsonField(
            JsonKind.FLAG, "Whether an operator has accepted the loss of all of these objects."
        ),
        "command": JsonField(JsonKind.TEXT, "The command that gives the segment up."),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedSegment:
    """Represents a finished segment, and the recorded anomalies of its objects.

    `is_accepted`: an operator has accepted the loss of all of those objects.
    """

    metadata: RemoteLogSegmentMetadata
    anomalies: tuple[Anomaly, ...]
    is_accepted: bool

    @property
    def command(self) -> str:
        """Return the command that gives the segment up."""
        tip = self.metadata.segment_id.topic_id_partition
        segment = id_to_text(self.metadata.segment_id.id)
        return f"rlm topic resolve {tip.topic}:{tip.partition} --lost-segment={segment}"


def damaged_segments(
    state: PartitionState, segments: Iterable[RemoteLogSegmentMetadata]
) -> tuple[DamagedSegment, ...]:
    """Return the segments for which `state` has an open anomaly, by offset."""
    known = tuple(segments)
    found = open_anomalies(state, known)
    damaged = []
    for metadata in sorted(known, key=lambda each: each.offsets.start_offset):
        own = [each for each in found if each.segment == metadata.segment_id.id]
        accepted = {each.object_key for each in own if each.kind is AnomalyKind.LOSS_ACCEPTED}
        reports = tuple(each for each in own if each.kind is not AnomalyKind.LOSS_ACCEPTED)
        if reports:
            damaged.append(
                DamagedSegment(
                    metadata=metadata,
                    anomalies=reports,
                    is_accepted=accepted >= {each.object_key for each in reports},
                )
            )
    return tuple(damaged)


def damage_lines(damaged: DamagedSegment) -> Iterator[str]:
    """Yield the segment's offsets, its objects and what to do, for people."""
    tip = damaged.metadata.segment_id.topic_id_partition
    offsets = damaged.metadata.offsets
    yield (
        f"{tip.topic}:{tip.partition} damaged segment"
        f" {id_to_text(damaged.metadata.segment_id.id)}: offsets"
        f" {offsets.start_offset}..{offsets.last_offset}"
    )
    for each in damaged.anomalies:
        yield f"  object {each.object_key}: {each.kind.label} since {iso_time(each.first_ms)}"
    if damaged.is_accepted:
        yield "  its loss is accepted: the leader's manager records the gap"
        return
    yield (
        "  Restore the object if you can. Data loss: this command gives up the segment's records"
        " (try --dry-run first):"
    )
    yield f"    {damaged.command}"


def damage_as_json(damaged: DamagedSegment) -> Mapping[str, object]:
    """Return the segment as a DamagedSegment document."""
    offsets = damaged.metadata.offsets
    return {
        "segment_id": id_to_text(damaged.metadata.segment_id.id),
        "start_offset": offsets.start_offset,
        "end_offset": offsets.end_offset,
        "anomalies": [anomaly_to_json(each) for each in damaged.anomalies],
        "loss_accepted": damaged.is_accepted,
        "command": damaged.command,
    }
