"""Renders the findings that do not affect readers: totals, then the largest ones. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from spark_tools.audit.findings import Finding
from spark_tools.audit.page.advice import HOUSEKEEPING, Housekeeping, configured
from spark_tools.audit.page.facts import NOT_KNOWN, AuditFacts, cost, more, offsets
from spark_tools.audit.page.markup import (
    Column,
    Html,
    code,
    joined,
    paragraph,
    section,
    small,
    table,
    text,
)
from spark_tools.audit.page.readable import size

_SHOWN_OF_A_KIND = 20


def housekeeping_section(facts: AuditFacts, findings: Sequence[Finding]) -> Html:
    """Render a row for each kind of finding, then the largest findings of each kind."""
    by_kind = {each.kind.value: list[Finding]() for each in HOUSEKEEPING}
    for finding in findings:
        if finding.kind in by_kind:
            by_kind[finding.kind].append(finding)
    found = [(each, by_kind[each.kind.value]) for each in HOUSEKEEPING if by_kind[each.kind.value]]
    if not found:
        return section("Housekeeping", paragraph(text("Nothing to clean up.")))
    columns = (
        Column(title="What"),
        Column(title="Count", is_number=True),
        Column(title="Size", is_number=True),
        Column(title="Monthly cost", is_number=True),
        Column(title="What to do"),
    )
    rows = (_kind_cells(facts, kind, every) for kind, every in found)
    details = (_details(facts, kind, every) for kind, every in found)
    return section(
        "Housekeeping",
        paragraph(text("None of these findings affects readers.")),
        table("What can be cleaned up", columns, rows),
        *details,
    )


def _kind_cells(
    facts: AuditFacts, kind: Housekeeping, found: Sequence[Finding]
) -> tuple[Html, ...]:
    size_bytes = sum(max(each.length_bytes, 0) for each in found)
    is_sized = any(each.length_bytes >= 0 for each in found)
    return (
        joined(text(kind.title), small(kind.meaning), by="<br>"),
        text(f"{len(found):,}"),
        text(size(size_bytes)) if is_sized else NOT_KNOWN,
        cost(facts, size_bytes) if is_sized else NOT_KNOWN,
        kind.action(configured(facts.config)),
    )


def _details(facts: AuditFacts, kind: Housekeeping, found: Sequence[Finding]) -> Html:
    columns = (
        Column(title="Object or segment"),
        Column(title="Topic"),
        Column(title="Partition", is_number=True),
        Column(title="Offsets"),
        Column(title="Size", is_number=True),
        Column(title="Detail"),
    )
    shown = heapq.nlargest(_SHOWN_OF_A_KIND, found, key=lambda each: each.length_bytes)
    rest_count = len(found) - len(shown)
    caption = f"{kind.title}: the {len(shown)} largest" if rest_count else kind.title
    return joined(
        table(caption, columns, map(_detail_cells, shown)), more(facts, rest_count), by="\n"
    )


def _detail_cells(finding: Finding) -> tuple[Html, ...]:
    return (
        code(finding.object_key or finding.segment_id),
        text(finding.topic or "–"),
        text("–" if finding.partition < 0 else finding.partition),
        offsets(finding),
        text("–" if finding.length_bytes < 0 else size(finding.length_bytes)),
        text(finding.detail),
    )
