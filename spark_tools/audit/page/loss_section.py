"""Renders the losses that readers notice, with the remedy for each. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from spark_tools.audit.findings import Finding
from spark_tools.audit.page.advice import LOSS_TITLES, configured, loss_action
from spark_tools.audit.page.facts import NOT_KNOWN, AuditFacts, more, offsets
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

_SHOWN_LOSSES = 200


def loss_section(facts: AuditFacts, losses: Sequence[Finding]) -> Html:
    """Render a row for each loss; `losses` ascend by topic, partition and offset."""
    if not losses:
        return section("Data loss", paragraph(text("None was found.")))
    columns = (
        Column(title="What"),
        Column(title="Topic"),
        Column(title="Partition", is_number=True),
        Column(title="Offsets [start, end)"),
        Column(title="Object"),
        Column(title="What to do"),
    )
    options = configured(facts.config)
    return section(
        "Data loss",
        paragraph(
            text(
                "Readers get errors for these offsets. Restore objects first, for example from"
                " versions that the bucket kept. The commands below change nothing."
            )
        ),
        table(
            "Losses, by topic, partition and offset",
            columns,
            (_loss_cells(each, options) for each in losses[:_SHOWN_LOSSES]),
        ),
        more(facts, len(losses) - _SHOWN_LOSSES),
    )


def _loss_cells(loss: Finding, options: str) -> tuple[Html, ...]:
    return (
        joined(text(LOSS_TITLES[loss.kind]), small(loss.detail), by="<br>"),
        text(loss.topic),
        text(loss.partition),
        offsets(loss),
        code(loss.object_key) if loss.object_key else NOT_KNOWN,
        loss_action(loss, options),
    )
