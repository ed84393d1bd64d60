"""Renders the whole page: one HTML file that loads and runs nothing. Pure.

The length of the page is bounded, because each table shows a limited number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_tools.audit.findings import Finding
from spark_tools.audit.page.advice import configured
from spark_tools.audit.page.facts import AuditFacts, wall_time
from spark_tools.audit.page.housekeeping_section import housekeeping_section
from spark_tools.audit.page.loss_section import loss_section, losses_of, summary_sentence
from spark_tools.audit.page.markup import NOTHING, Html, command, joined, paragraph, text
from spark_tools.audit.page.readable import duration
from spark_tools.audit.page.store_sections import about_section, topics_section
from spark_tools.audit.page.style import STYLE
from spark_tools.audit.totals import TopicTotals


def report_page(
    facts: AuditFacts, totals: Sequence[TopicTotals], findings: Sequence[Finding]
) -> str:
    """Render the losses, the housekeeping, each topic's stored data, and the audit's facts."""
    losses = losses_of(findings)
    sentence = summary_sentence(losses)
    parts = (
        _header(facts, sentence, is_loss=bool(losses)),
        loss_section(facts, losses),
        housekeeping_section(facts, findings),
        topics_section(facts, totals),
        about_section(facts),
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(sentence)} rlm-audit, cluster {text(facts.cluster_id)}</title>"
        f"<style>{STYLE}</style></head>\n<body>\n{joined(*parts, by=chr(10))}\n</body></html>\n"
    )


def _header(facts: AuditFacts, sentence: str, *, is_loss: bool) -> Html:
    """Render the summary sentence, and what the audit did not check."""
    limits = [
        text(
            "The checksum of every object of finished segments was computed from its bytes."
            if facts.checksums_read
            else "Objects were not read: damage that keeps an object's length can be missed."
        ),
        NOTHING if facts.checksums_read else _read_them(facts),
        text(
            "Objects without a segment, segments below the log start offset, and unfinished work "
            f"are hidden if they are younger than {duration(facts.grace_ms)}."
            if facts.grace_ms
            else "Objects without a segment, segments below the log start offset, and "
            "unfinished work are shown at any age."
        ),
    ]
    about = f"Audit of cluster {facts.cluster_id}, {wall_time(facts.started_ms)}"
    return Html(
        f'<header{" class=loss" if is_loss else ""}><p class="kicker">{text(about)}</p>'
        f"<h1>{text(sentence)}</h1>{paragraph(*limits)}</header>"
    )


def _read_them(facts: AuditFacts) -> Html:
    return joined(
        text("To read the objects:"),
        command(f"rlm-audit {configured(facts.config)} --verify-checksums"),
    )
