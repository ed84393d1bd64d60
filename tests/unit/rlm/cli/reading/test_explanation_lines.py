"""What `rlm explain` prints for people, on a terminal of 80 columns."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from rlm.cli.reading.explain import explanation_lines
from rlm.cli.reading.stored_objects import AS_RECORDED, MISSING, StoredObjects
from rlm.cli.terminal.lines import fitted
from rlm.status.explanation import ContainingSegment, LocalCopy, OffsetExplanation
from rlmm.state.gaps import GapReason
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import anomaly, gap
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden, titled
from tests.unit.rlm.cli.long_names import LONGEST_NAME, tip

KEY = f"emea/{tip().topic}-ABCDEFGHIJKLMNOPQRSTUV/117/00000000012345678901-{'A' * 22}"
OFFSETS = OffsetRange(start_offset=12_345_678_901, end_offset=12_345_999_999)
SEGMENT = ContainingSegment(
    segment_id=UUID(int=1),
    state="COPY_SEGMENT_FINISHED",
    offsets=OFFSETS,
    readable=OFFSETS,
    size_bytes=1 << 30,
    max_timestamp_ms=1_900_000_000_000,
    state_since_ms=1_900_000_000_000,
    is_dead_lettered=False,
    object_keys=(f"{KEY}.log", f"{KEY}.meta"),
)
STORED = OffsetExplanation(
    offset=12_345_700_000,
    location="both",
    leader_epoch=123_456,
    log_start_offset=1_234_567_890,
    local_start_offset=12_345_000_000,
    high_watermark=98_765_432_109,
    segments=(SEGMENT, replace(SEGMENT, segment_id=UUID(int=2), readable=None)),
    local_copy=LocalCopy(
        state="blocked",
        reason="within_deletion_lag",
        offsets=OFFSETS,
        values={"stored_ms": 1_900_000_000_000, "age_ms": 12_345, "lag_ms": 86_400_000},
    ),
)
LOST = OffsetExplanation(
    offset=5,
    location="gap",
    leader_epoch=None,
    log_start_offset=0,
    local_start_offset=7,
    high_watermark=9,
    segments=(),
    gap=gap(5, 6, reason=GapReason.ACCEPTED_LOSS),
)
DAMAGED = StoredObjects(
    anomalies=(anomaly(key=f"{KEY}.log"),),
    states={f"{KEY}.log": MISSING, f"{KEY}.meta": AS_RECORDED},
)


def test_explanation_when_printed_at_80_columns_then_as_reviewed() -> None:
    nothing = StoredObjects()
    longest = tip(LONGEST_NAME)

    assert_golden(
        "explain.txt",
        titled(
            {
                "a gap": fitted(explanation_lines(tip("orders", 0), LOST, nothing), COLUMNS),
                "two segments, one damaged": fitted(
                    explanation_lines(tip(), STORED, DAMAGED), COLUMNS
                ),
                "the longest name": fitted(explanation_lines(longest, LOST, nothing), COLUMNS),
            }
        ),
    )
