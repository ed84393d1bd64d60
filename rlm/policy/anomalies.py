"""Stored objects on record as missing or corrupt, and what depends on their segments. Pure.

A report comes from anyone who reads, so nothing is deleted by it. It blocks a trim: what is only
in a segment that may be damaged stays on the broker until somebody finds the object whole, another
segment holds the same offsets, or the anomaly's segment is given up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rlm.policy.view import PartitionView
from rlmm.anomaly import Anomaly, AnomalyKind
from rlmm.partition_state import PartitionState
from rsm.segment.coverage import covered_end
from rsm.segment.ids import id_to_text
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState


def open_anomalies(
    state: PartitionState, segments: Iterable[RemoteLogSegmentMetadata]
) -> tuple[Anomaly, ...]:
    """The anomalies of finished segments: what is being deleted is missing rightly."""
    if not state.anomalies:
        return ()
    finished = {
        metadata.segment_id.id
        for metadata in segments
        if metadata.state is SegmentState.COPY_SEGMENT_FINISHED
    }
    return tuple(each for each in state.anomalies if each.segment in finished)


def damaged_below(view: PartitionView, end_offset: int) -> Mapping[str, int | str] | None:
    """The first anomaly that leaves offsets below `end_offset` in no sound segment; None if none.

    Offsets from the local start on.
    """
    damaged = {each.segment for each in view.state.anomalies}
    if not damaged:
        return None
    sound = [part for part in view.stored if part.metadata.segment_id.id not in damaged]
    sound_end_offset = covered_end(sound, view.local_start_offset)
    if sound_end_offset >= end_offset:
        return None
    anomalies = open_anomalies(view.state, (record.metadata for record in view.segments))
    of_segments = {each.segment: each for each in anomalies}
    for part in view.stored:
        found = of_segments.get(part.metadata.segment_id.id)
        if found is not None and sound_end_offset in part.offsets:
            return {
                "sound_end_offset": sound_end_offset,
                "segment_id": id_to_text(found.segment),
                "object": found.object_key,
                "kind": found.kind.label,
            }
    return None


def object_counts(anomalies: Iterable[Anomaly]) -> Counter[AnomalyKind]:
    """How many objects there are of each kind, each object once: an accepted loss is that only."""
    kinds = {}
    for each in sorted(anomalies, key=lambda each: each.kind.value):
        kinds[each.segment, each.object_key] = each.kind
    return Counter(kinds.values())


def anomaly_as_json(anomaly: Anomaly) -> Mapping[str, object]:
    """As `rlm status --json` and `rlm explain --json` show it."""
    return {
        "segment_id": id_to_text(anomaly.segment),
        "object": anomaly.object_key,
        "kind": anomaly.kind.label,
        "first_ms": anomaly.first_ms,
        "last_ms": anomaly.last_ms,
        "attempts": anomaly.attempts,
    }


def anomalies_text(anomalies: Sequence[Anomaly]) -> str:
    """As a table shows them: the first object, and how many there are beyond it."""
    if not anomalies:
        return ""
    first = min(anomalies, key=lambda each: each.first_ms)
    objects = {(each.segment, each.object_key) for each in anomalies}
    more = f" and {len(objects) - 1} more" if len(objects) > 1 else ""
    return f"{first.kind.label}: {first.object_key}{more}"
