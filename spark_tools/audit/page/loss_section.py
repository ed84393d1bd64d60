"""Selects and renders the findings of lost or damaged data, with their remedies. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from spark_tools.audit.findings import DATA_LOSS, Finding
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
from spark_tools.audit.page.readable import count

_SHOWN_LOSSES = 200
_LOSSES = frozenset(each.value for each in DATA_LOSS)


def loss_section(facts: AuditFacts, losses: Sequence[Finding]) -> Html:
    """Render a row for each of the first losses, then the number of other losses.

    `losses` ascend by topic, partition and offset.
    """
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
                "Readers get errors for these offsets. Restore the objects first, for example from"
                " earlier versions in the bucket. The commands below change nothing."
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


def losses_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that cause errors for readers, by topic, partition and offset."""
    return sorted((each for each in findings if each.kind in _LOSSES), key=_location)


def summary_sentence(losses: Iterable[Finding]) -> str:
    """Summarize the losses that `losses_of` returned; adjacent ones count as one range."""
    partition_count = range_count = 0
    for _, found in groupby(losses, key=lambda each: (each.topic, each.partition)):
        partition_count += 1
        range_count += _range_count(found)
    if not partition_count:
        return "No data is missing or damaged."
    ranges, partitions = count(range_count, "range"), count(partition_count, "partition")
    return f"Data is missing or damaged: {ranges} in {partitions}."


def _range_count(losses: Iterable[Finding]) -> int:
    number, reached = 0, -1
    for each in losses:
        if not number or each.start_offset > reached:
            number += 1
        reached = max(reached, each.end_offset)
    return number


def _location(finding: Finding) -> tuple[str, int, int, str]:
    return finding.topic, finding.partition, finding.start_offset, finding.object_key
