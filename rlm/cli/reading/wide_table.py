"""Renders all columns of `rlm status`, one line of any width per partition. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rlm.cli.invocation.amounts import iso_time
from rlm.cli.terminal.table import TextColumn, TextRow, table_lines
from rlm.policy.anomalies import anomalies_text
from rlm.policy.blocked import Blocked
from rlm.status.cluster_status import PartitionStatus
from rlmm.state.partition_state import ReadLease

_NUMBERS = (
    "epoch",
    "log start",
    "local start",
    "last tiered",
    "pending",
    "LSO",
    "HW",
    "lag segments",
    "lag bytes",
    "remote segments",
    "remote bytes",
)
_COLUMNS = (
    *(TextColumn(name=name) for name in ("topic", "partition", "state", "role")),
    *(TextColumn(name=name, is_number=True) for name in _NUMBERS),
    *(
        TextColumn(name=name)
        for name in ("copy blocked", "trim blocked", "anomalies", "read leases")
    ),
)


def wide_lines(rows: Sequence[PartitionStatus]) -> Iterator[str]:
    """Yield the table; an unknown number is "?", and an unknown or absent text is "-"."""
    return table_lines(_COLUMNS, map(_row, rows), width=None)


def _row(row: PartitionStatus) -> TextRow:
    tip, report = row.topic_id_partition, row.report
    numbers = (
        row.leader_epoch,
        row.log_start_offset,
        row.local_start_offset,
        row.last_tiered_offset,
        row.pending_upload_offset,
        row.last_stable_offset,
        row.high_watermark,
        None if report is None else report.lag_segments,
        None if report is None else report.lag_bytes,
        row.remote_segments,
        row.remote_bytes,
    )
    return TextRow(
        cells=(
            tip.topic,
            str(tip.partition),
            row.policy_state or "",
            row.role or "",
            *("?" if number is None else str(number) for number in numbers),
            blocked_text(None if report is None else report.copy_blocked),
            blocked_text(None if report is None else report.trim_blocked),
            anomalies_text(row.anomalies),
            _leases_text(row.leases),
        )
    )


def blocked_text(blocked: Blocked | None) -> str:
    """Format what blocks a copy or a trim: the reason, and the cause if it is known."""
    if blocked is None:
        return ""
    return ": ".join(str(text) for text in (blocked.reason, blocked.values.get("cause")) if text)


def _leases_text(leases: Sequence[ReadLease]) -> str:
    """Format the lease that expires last, with its holder, and the number of others."""
    if not leases:
        return ""
    last = max(leases, key=lambda lease: lease.expires_ms)
    more = f" and {len(leases) - 1} more" if len(leases) > 1 else ""
    return f"{last.holder} until {iso_time(last.expires_ms)}{more}"
