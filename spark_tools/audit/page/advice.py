"""Explains each kind of finding and its remedy, with commands to copy. Pure.

docs/spark-jobs.md explains the same kinds.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from spark_tools.audit.findings import Finding, FindingKind
from spark_tools.audit.page.markup import Html, code, command, joined, text

LOSS_TITLES = {
    FindingKind.MISSING.value: "Object is missing",
    FindingKind.SIZE.value: "Object length differs",
    FindingKind.CHECKSUM.value: "Object checksum differs",
    FindingKind.GAP.value: "Nothing is stored",
}
"""The titles of the kinds of data loss, by the values of `FindingKind`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Housekeeping:
    """Represents a kind of finding that does not affect readers.

    `action` renders the remedy; its argument is the result of `configured`.
    """

    kind: FindingKind
    title: str
    meaning: str
    action: Callable[[str], Html]


def configured(config: str | None) -> str:
    """Return `--config` with the audit's configuration file; a placeholder if there is none."""
    return f"--config {shlex.quote(config or 'rlm.properties')}"


def loss_action(loss: Finding, options: str) -> Html:
    """Render the remedy for one loss; its commands change nothing."""
    location = shlex.quote(f"{loss.topic}:{loss.partition}")
    look = command(f"rlm explain {location} {max(loss.start_offset, 0)} {options}")
    if loss.kind == FindingKind.GAP.value:
        return joined(
            text("Find out where the offsets are:"),
            look,
            text("If no broker has the offsets, see which losses you can accept:"),
            command(f"rlm topic resolve {location} --dry-run {options}"),
        )
    segment = shlex.quote(f"--lost-segment={loss.segment_id.rsplit(':', 1)[-1]}")
    return joined(
        text("Restore the object under its name, then check the result:"),
        look,
        text("If you cannot restore the object, list the lost offsets:"),
        command(f"rlm topic resolve {location} {segment} --dry-run {options}"),
    )


def _treat_orphans(options: str) -> Html:
    return joined(
        text("Count the objects to delete:"),
        command(f"rlm-audit {options} --delete --dry-run"),
        text("Request their deletion, which cannot be undone:"),
        command(f"rlm-audit {options} --delete --yes"),
        text("Run the requested deletions:"),
        command(f"rlm-repair {options} --jars spark-jars --checkpoint DIR"),
    )


def _repair(options: str) -> Html:
    return joined(
        text("The manager finishes these deletions, except dead letters. List the dead letters:"),
        command(f"rlm dlq list {options}"),
        text("Finish the deletions that the dead letters record:"),
        command(f"rlm-repair {options} --jars spark-jars --checkpoint DIR"),
    )


def _leave_to_manager(options: str) -> Html:
    return joined(
        text("The manager deletes them. If they stay, see the manager's log and"),
        command(f"rlm status {options}"),
    )


HOUSEKEEPING = (
    Housekeeping(
        kind=FindingKind.ORPHAN,
        title="Orphans",
        meaning="Objects that no segment of the metadata names. Nothing reads them.",
        action=_treat_orphans,
    ),
    Housekeeping(
        kind=FindingKind.QUARANTINED,
        title="Orphans in quarantine",
        meaning="Orphans that were moved to quarantine longer ago than the grace period.",
        action=_treat_orphans,
    ),
    Housekeeping(
        kind=FindingKind.FOREIGN,
        title="Foreign objects",
        meaning="Objects whose names do not have rlm's format. Nothing reads or deletes them.",
        action=lambda _: text("Move them out of the store's prefix."),
    ),
    Housekeeping(
        kind=FindingKind.DANGLING_DELETE,
        title="Deletions that did not finish",
        meaning="Segments whose deletion began longer ago than the grace period.",
        action=_repair,
    ),
    Housekeeping(
        kind=FindingKind.DANGLING_COPY,
        title="Copies that did not finish",
        meaning="Segments whose copy is past its deadline. Nothing reads them.",
        action=_leave_to_manager,
    ),
    Housekeeping(
        kind=FindingKind.BELOW_LOG_START,
        title="Segments below the log start offset",
        meaning="Segments that end at or below the log start offset. Nothing reads them.",
        action=_leave_to_manager,
    ),
    Housekeeping(
        kind=FindingKind.OUT_OF_LINEAGE,
        title="Segments outside the lineage",
        meaning="Segments that an election cut off from the log. Nothing reads them.",
        action=lambda _: joined(
            text("Nothing. They expire after"), code("remote.unreferenced.grace.ms"), by=" "
        ),
    ),
    Housekeeping(
        kind=FindingKind.OVERLAP,
        title="Overlapping segments",
        meaning="Segments that share offsets with others. Readers get each offset once.",
        action=lambda _: text("Nothing."),
    ),
)
"""The kinds in the order of the page: those that may need an operator come first."""
