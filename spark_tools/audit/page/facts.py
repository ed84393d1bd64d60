"""Represents an audit's parameters, and renders values that several sections share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_tools.audit.findings import Finding
from spark_tools.audit.page.markup import NOTHING, Html, code, joined, text
from spark_tools.audit.page.readable import Price

NOT_KNOWN = text("–")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFacts:
    """Represents what was audited, how and when. `started_ms` is a wall-clock time.

    `store` and `output` are addresses without secrets. `config` is the configuration file.
    `metadata_positions` maps each partition of the metadata topic to its next offset.
    """

    cluster_id: str
    store: str
    metadata_topic: str
    metadata_positions: Mapping[int, int]
    grace_ms: int
    checksums_read: bool
    started_ms: int
    took_ms: int
    price: Price | None = None
    config: str | None = None
    output: str | None = None


def more(facts: AuditFacts, rest_count: int) -> Html:
    """Render the number of findings not shown and their location; NOTHING if all are shown."""
    if rest_count <= 0:
        return NOTHING
    where = (
        joined(text("All are in"), code(f"{facts.output}/findings"))
        if facts.output
        else joined(code("rlm-audit … --output DIR"), text("writes all of them as Parquet"))
    )
    return Html(f"<p>{text(f'And {rest_count:,} more.')} {where}.</p>")


def offsets(finding: Finding) -> Html:
    """Render a finding's range of offsets."""
    if finding.start_offset < 0:
        return NOT_KNOWN
    if finding.end_offset < 0:
        return text(f"from {finding.start_offset}")
    return text(f"[{finding.start_offset}, {finding.end_offset})")


def cost(facts: AuditFacts, size_bytes: int) -> Html:
    """Render the monthly cost of a size."""
    return NOT_KNOWN if facts.price is None else text(facts.price.of(size_bytes))


def wall_time(wall_ms: int) -> str:
    """Format a time in UTC."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
