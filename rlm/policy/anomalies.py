"""Evaluates anomalies and their effect on the partition. Pure.

Any reader can report an anomaly, so a report deletes nothing. A report blocks trims, so that the
broker keeps records whose only stored segment may be damaged. The block ends when a check finds the
object whole, another segment stores the same offsets, or an operator gives up the segment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rlm.policy.blocked import Blocked
from rlm.policy.view import PartitionView
from rlmm.events.anomaly import ANOMALIES_MAX_COUNT
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.partition_state import PartitionState
from rsm.segment.ids import id_to_text
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange, missing


def open_anomalies(
    state: PartitionState, segments: Iterable[RemoteLogSegmentMetadata]
) -> tuple[Anomaly, ...]:
    """Return the anomalies of finished segments; segments in other states may lack objects."""
    if not state.anomalies:
        return ()
    finished = {
        metadata.segment_id.id
        for metadata in segments
        if metadata.state is SegmentState.COPY_SEGMENT_FINISHED
    }
    return tuple(each for each in state.anomalies if each.segment in finished)


def undamaged(
    state: PartitionState, segments: Iterable[RemoteLogSegmentMetadata]
) -> tuple[RemoteLogSegmentMetadata, ...]:
    """Return the segments without a recorded anomaly."""
    damaged = {each.segment for each in state.anomalies}
    return tuple(each for each in segments if each.segment_id.id not in damaged)


def blocked_by_anomalies(view: PartitionView, end_offset: int) -> Blocked | None:
    """Return why anomalies block a trim below `end_offset`; None if they do not.

    At the maximum number of anomalies no process can report another one. Any segment may then be
    damaged.
    """
    reported = sum(each.kind is not AnomalyKind.LOSS_ACCEPTED for each in view.state.anomalies)
    if reported >= ANOMALIES_MAX_COUNT:
        values = {"anomalies": reported, "max_anomalies": ANOMALIES_MAX_COUNT}
        return Blocked(reason="anomalies_at_limit", values=values)
    damaged = damaged_below(view, end_offset)
    return None if damaged is None else Blocked(reason="anomaly", values=damaged)


def damaged_below(view: PartitionView, end_offset: int) -> Mapping[str, int | str] | None:
    """Return the first damaged segment below `end_offset` that no sound one replaces; else None.

    Considers only offsets at or above the local start. A segment is damaged if it has a recorded
    anomaly, or if this manager's last check found it damaged. The check counts too, because any
    reader may clear the record.
    """
    reported = {each.segment: each for each in view.state.anomalies}
    damaged = view.damage.damaged | reported.keys()
    if not damaged:
        return None
    local = OffsetRange(
        start_offset=view.local_start_offset, end_offset=max(view.local_start_offset, end_offset)
    )
    sound = tuple(p.offsets for p in view.stored if p.metadata.segment_id.id not in damaged)
    for part in view.stored:
        segment = part.metadata.segment_id.id
        if segment not in damaged or not part.offsets.overlaps(local):
            continue
        lost = missing(sound, part.offsets.intersection(local))
        if lost:
            found = reported.get(segment)
            return {
                "sound_end_offset": lost[0].start_offset,
                "segment_id": id_to_text(segment),
                "object": part.metadata.objects[0].key if found is None else found.object_key,
                "kind": "found_by_manager" if found is None else found.kind.label,
            }
    return None


def object_counts(anomalies: Iterable[Anomaly]) -> Counter[AnomalyKind]:
    """Return the number of objects per kind; an accepted loss counts only as that kind."""
    kinds = {}
    for each in sorted(anomalies, key=lambda each: each.kind.value):
        kinds[each.segment, each.object_key] = each.kind
    return Counter(kinds.values())


def anomalies_text(anomalies: Sequence[Anomaly]) -> str:
    """Return the first anomaly and the number of further objects, as a table prints them."""
    if not anomalies:
        return ""
    first = min(anomalies, key=lambda each: each.first_ms)
    objects = {(each.segment, each.object_key) for each in anomalies}
    more = f" and {len(objects) - 1} more" if len(objects) > 1 else ""
    return f"{first.kind.label}: {first.object_key}{more}"
