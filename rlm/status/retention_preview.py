"""Previews what retention would do to a partition now. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rlm.policy.plan import Plan
from rlm.policy.retention import log_pieces
from rlm.policy.view import PartitionView


def retention_preview(view: PartitionView, decided: Plan) -> Mapping[str, object]:
    """Return the part of a cycle's plan that deletes data; names are those of the HTTP API."""
    tip, start = view.topic_id_partition, decided.log_start
    current = view.state.log_start_offset
    new = current if start is None else start.offset
    gone = [
        piece for piece in log_pieces(view) if new is not None and piece.offsets.end_offset <= new
    ]
    blocked, kept = decided.trim.blocked, decided.expiry_blocked
    return {
        "topic": tip.topic,
        "partition": tip.partition,
        "log_start_offset": current,
        "new_log_start_offset": new,
        "rule": "" if start is None else start.reason,
        "expiring_segments": len(gone),
        "expiring_bytes": sum(piece.size_bytes for piece in gone),
        "deletions": [
            {
                "base_offset": each.record.metadata.offsets.start_offset,
                "end_offset": each.record.metadata.offsets.end_offset,
                "size_bytes": each.record.metadata.segment_size_bytes,
                "rule": each.reason,
            }
            for each in decided.deletions
        ],
        "local_start_offset": view.local_start_offset,
        "new_local_start_offset": decided.trim.offset or view.local_start_offset,
        "trim_rule": decided.trim.rule,
        "trim_blocked": None if blocked is None else {"reason": blocked.reason, **blocked.values},
        "expiry_blocked": None if kept is None else {"reason": kept.reason, **kept.values},
    }
