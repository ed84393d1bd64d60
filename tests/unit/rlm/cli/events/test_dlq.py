"""What `rlm dlq list` prints for people."""

from __future__ import annotations

from dataclasses import replace

from rlm.cli.events.dlq import DeadLetterRow, dead_letter_lines
from rlm.policy.request.dead_letters import DeadLetterState
from rlmm.dead_letters.dead_letter import DeadLetter
from tests.metadata_builder import DELETE_STARTED, segment_metadata
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden, titled
from tests.unit.rlm.cli.long_names import LONGEST_NAME, tip

SHORT = DeadLetterRow(
    dead_letter=DeadLetter(
        metadata=segment_metadata(1, 100, 200, state=DELETE_STARTED),
        reason="timed out",
        attempts=5,
        first_attempt_ms=1_900_000_000_000,
        last_attempt_ms=1_900_000_600_000,
    ),
    state=DeadLetterState.OPEN,
    record=None,
)


def _long(topic: str, partition: int) -> DeadLetterRow:
    start = 12_345_678_901
    metadata = segment_metadata(
        2, start, start + 1, state=DELETE_STARTED, partition=tip(topic, partition)
    )
    denied = replace(
        SHORT.dead_letter,
        metadata=metadata,
        attempts=12_345,
        reason="objects of the segment cannot be deleted: the store refuses the request: "
        f"AccessDenied (key={metadata.objects[0].key})",
    )
    return replace(SHORT, dead_letter=denied)


def test_dead_letters_when_printed_at_80_columns_then_as_reviewed() -> None:
    deleted = replace(SHORT, state=DeadLetterState.DONE, outcome="deleted")
    long = [
        SHORT,
        _long(tip().topic, 117),
        replace(_long(tip().topic, 117), state=DeadLetterState.DONE, outcome="deleted"),
        _long(LONGEST_NAME, 1),
    ]

    assert_golden(
        "dlq_list.txt",
        titled(
            {
                "none": dead_letter_lines([], width=COLUMNS),
                "short names": dead_letter_lines([SHORT, deleted], width=COLUMNS),
                "long names and reasons": dead_letter_lines(long, width=COLUMNS),
            }
        ),
    )
