"""The audit's report as one HTML page that needs nothing else. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from spark_tools.audit.findings import Finding
from spark_tools.audit.totals import TopicTotals

_SHOWN_FINDINGS = 200
_BAR_WIDTH = 400
_STYLE = (
    "body{font:14px sans-serif;margin:2em;max-width:70em}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ccc}"
    "td.n{text-align:right}rect{fill:#47a}"
)


def report_page(
    *,
    totals: Sequence[TopicTotals],
    findings: Sequence[Finding],
    positions: Mapping[int, int],
    price_per_gib_month: float | None,
    made_at: str,
) -> str:
    """What each topic holds, as a picture and as numbers, and what was found."""
    kinds = Counter(each.kind for each in findings)
    as_of = ", ".join(f"{partition}: {offset}" for partition, offset in sorted(positions.items()))
    parts = [
        "<!doctype html><html><head><meta charset='utf-8'><title>rlm-audit</title>",
        f"<style>{_STYLE}</style></head><body><h1>Audit of the store</h1>",
        f"<p>{escape(made_at)}; consistent with the metadata topic at {escape(as_of)}.</p>",
        "<h2>Findings</h2>",
        _table(("kind", "count"), sorted(kinds.items())) if kinds else "<p>None.</p>",
        "<h2>Topics</h2>",
        _bars(totals),
        _table(
            ("topic", "partitions", "segments", "bytes", "findings", "cost per month"),
            (_topic_cells(each, price_per_gib_month) for each in totals),
        ),
        "<h2>What was found</h2>" if findings else "",
        _table(
            ("kind", "topic", "partition", "offset", "object", "detail"),
            (_finding_cells(each) for each in findings[:_SHOWN_FINDINGS]),
        )
        if findings
        else "",
        _rest(len(findings) - _SHOWN_FINDINGS),
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _topic_cells(each: TopicTotals, price: float | None) -> tuple[object, ...]:
    cost = "" if price is None else f"{each.stored_bytes / (1 << 30) * price:.2f}"
    counts = (each.partitions_count, each.segments_count, each.stored_bytes, each.findings_count)
    return (each.topic, *counts, cost)


def _finding_cells(each: Finding) -> tuple[object, ...]:
    numbers = ("" if value < 0 else value for value in (each.partition, each.start_offset))
    return (each.kind, each.topic, *numbers, each.object_key or each.segment_id, each.detail)


def _bars(totals: Sequence[TopicTotals]) -> str:
    """A bar per topic, as long as its share of the largest."""
    largest = max((each.stored_bytes for each in totals), default=0)
    if not largest:
        return ""
    bars = (
        f"<rect x='0' y='{number * 22}' height='16' "
        f"width='{max(1, each.stored_bytes * _BAR_WIDTH // largest)}'/>"
        f"<text x='{_BAR_WIDTH + 10}' y='{number * 22 + 13}'>{escape(each.topic)}</text>"
        for number, each in enumerate(totals)
    )
    return f"<svg width='900' height='{len(totals) * 22}'>{''.join(bars)}</svg>"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    return f"<table><tr>{titles}</tr>{body}</table>"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"<td class='n'>{value}</td>"
    return f"<td>{escape(str(value))}</td>"


def _rest(count: int) -> str:
    return f"<p>And {count} more, in the Parquet files.</p>" if count > 0 else ""
