"""Renders all columns of `rlm status`, one row per partition."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from rlm.cli.invocation.amounts import iso_time
from rlm.policy.anomalies import anomalies_text
from rlm.policy.blocked import Blocked
from rlm.status.cluster_status import PartitionStatus
from rlmm.state.partition_state import ReadLease


def wide_table(rows: Sequence[PartitionStatus]) -> Table:
    """Return the table; "?" where a value is unknown."""
    table = Table("topic", "partition", "state", "role", box=None, pad_edge=False)
    for name in ("epoch", "log start", "local start", "last tiered", "pending", "LSO", "HW"):
        table.add_column(name, justify="right")
    for name in ("lag segments", "lag bytes", "remote segments", "remote bytes"):
        table.add_column(name, justify="right")
    table.add_column("copy blocked")
    table.add_column("trim blocked")
    table.add_column("anomalies")
    table.add_column("read leases", overflow="fold")  # a shortened holder cannot be typed
    for row in rows:
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
        table.add_row(
            tip.topic,
            str(tip.partition),
            row.policy_state or "-",
            row.role or "-",
            *("?" if number is None else str(number) for number in numbers),
            blocked_text(None if report is None else report.copy_blocked),
            blocked_text(None if report is None else report.trim_blocked),
            anomalies_text(row.anomalies),
            _leases_text(row.leases),
        )
    return table


def blocked_text(blocked: Blocked | None) -> str:
    """Format what blocks a copy or a trim: the reason and its cause."""
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
