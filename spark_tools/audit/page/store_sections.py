"""Renders the stored data of each topic, and the audit's parameters. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_tools.audit.page.facts import AuditFacts, cost, wall_time
from spark_tools.audit.page.markup import (
    NOTHING,
    Column,
    Html,
    code,
    described,
    joined,
    paragraph,
    section,
    table,
    text,
)
from spark_tools.audit.page.readable import count, duration, size
from spark_tools.audit.totals import TopicTotals

_SHOWN_TOPICS = 200
_SHOWN_POSITIONS = 100


def topics_section(facts: AuditFacts, totals: Sequence[TopicTotals]) -> Html:
    """Render the stored size and cost of the largest topics, then the number of other topics.

    `totals` must begin with the largest topic.
    """
    if not totals:
        return section("Topics", paragraph(text("Nothing is stored.")))
    columns = (
        Column(title="Topic"),
        Column(title="Partitions", is_number=True),
        Column(title="Segments", is_number=True),
        Column(title="Size", is_number=True),
        Column(title="Monthly cost", is_number=True),
        Column(title="Findings", is_number=True),
    )
    stored_bytes = sum(each.stored_bytes for each in totals)
    largest_bytes = max(each.stored_bytes for each in totals)
    summary = joined(
        text(f"{count(len(totals), 'topic')} with {size(stored_bytes)}"),
        text(f"for {facts.price.of(stored_bytes)} a month") if facts.price else NOTHING,
    )
    rest_count = len(totals) - _SHOWN_TOPICS
    return section(
        "Topics",
        paragraph(Html(f"{summary}.")),
        table(
            "Stored data of each topic, the largest first",
            columns,
            (_topic_cells(facts, each, largest_bytes) for each in totals[:_SHOWN_TOPICS]),
        ),
        paragraph(text(f"And {count(rest_count, 'smaller topic')}."))
        if rest_count > 0
        else NOTHING,
    )


def _topic_cells(facts: AuditFacts, each: TopicTotals, largest_bytes: int) -> tuple[Html, ...]:
    percent = 100 * each.stored_bytes // max(largest_bytes, 1)
    bar = Html(f'<span class="bar" aria-hidden="true" style="width:{percent}%"></span>')
    return (
        joined(text(each.topic), bar),
        text(f"{each.partitions_count:,}"),
        text(f"{each.segments_count:,}"),
        text(size(each.stored_bytes)),
        cost(facts, each.stored_bytes),
        text(f"{each.findings_count:,}"),
    )


def about_section(facts: AuditFacts) -> Html:
    """Render what was audited, how, when, and for how long."""
    price = facts.price
    rows = (
        ("Cluster id", code(facts.cluster_id)),
        ("Store", code(facts.store)),
        ("Metadata topic", code(facts.metadata_topic)),
        ("Metadata position", _positions(facts.metadata_positions)),
        ("Started", text(wall_time(facts.started_ms))),
        ("Took", text(duration(facts.took_ms))),
        ("Grace period", text(duration(facts.grace_ms) if facts.grace_ms else "none")),
        ("Checksums", text("read" if facts.checksums_read else "not read")),
        ("Price", text(f"{price.per_gib_month:g} {price.currency} for 1 GiB a month"))
        if price
        else ("Price", text("not given (--price)")),
        ("All findings", code(f"{facts.output}/findings"))
        if facts.output
        else ("All findings", text("not written (--output)")),
    )
    return section("About this audit", described(rows))


def _positions(positions: Mapping[int, int]) -> Html:
    """Render the first partitions' next offsets; count the other and the empty partitions."""
    read = sorted((each, offset) for each, offset in positions.items() if offset > 0)
    shown = ", ".join(f"{each}: {offset}" for each, offset in read[:_SHOWN_POSITIONS])
    rest_count = len(read) - _SHOWN_POSITIONS
    empty_count = len(positions) - len(read)
    return joined(
        text(f"next offset by partition: {shown or 'none'}"),
        text(f"and {count(rest_count, 'more partition')}") if rest_count > 0 else NOTHING,
        text(f"({count(empty_count, 'partition')} empty)") if empty_count else NOTHING,
    )
