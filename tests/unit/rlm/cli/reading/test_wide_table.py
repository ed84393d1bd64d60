"""What `rlm status --wide` prints."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from rlm.cli.reading.wide_table import wide_lines
from rlm.policy.blocked import Blocked
from rlmm.state.partition_state import ReadLease
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import anomaly
from tests.unit.rlm.cli.golden_text import assert_golden
from tests.unit.rlm.cli.long_names import LONGEST_NAME
from tests.unit.rlm.status.status_rows import row, unreported

HOLDER = "spark:worker-17.emea.example.com:8963fc49-9067-42d5-bc43-898c595b1f85"
FIRST = ReadLease(
    lease_id=UUID(int=5),
    offsets=OffsetRange(start_offset=100, end_offset=200),
    expires_ms=3_600_000,
    holder="an export",
)
LAST = replace(FIRST, lease_id=UUID(int=6), expires_ms=86_400_000, holder=HOLDER)


FAILING = Blocked(reason="failing", values={"cause": "no space left on device"})
SHARE_GROUP = Blocked(reason="share_group", values={"group": "audit", "cause": "unread records"})


def test_table_when_printed_then_one_line_for_each_partition_with_everything_whole() -> None:
    large = replace(
        row(LONGEST_NAME, 117, copy_blocked=FAILING, trim_blocked=SHARE_GROUP),
        high_watermark=98_765_432_109,
        remote_bytes=3 << 50,
        anomalies=(anomaly(1),),
        leases=(FIRST, LAST),
    )
    unknown = replace(unreported(row("payments")), policy_state=None)

    assert_golden("status_wide.txt", wide_lines([row(), large, unknown]), is_narrow=False)
