"""The output of `rlm offload --no-wait` and `rlm offload-status`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.cli.topics.offload import request_as_json, request_line
from rlm.cli.topics.offload_status import status_as_json, status_lines
from rlm.operator.offload import CopyProgress, OffloadRequest
from rlm.operator.offload_status import OffloadState, OffloadStatus, offload_status
from rlmm.state.offload_segments import OffloadSegmentStatus
from tests.metadata_builder import ORDERS, offload_segment
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden, titled
from tests.unit.rlm.cli.long_names import LONGEST_NAME, tip

PROGRESS = CopyProgress(
    rolled_end_offset=300,
    stored_end_offset=100,
    requested_offset=250,
    requested_end_offset=200,
    lag_segments=2,
    lag_bytes=4096,
)


def _status(requested: int | None, progress: CopyProgress | None) -> OffloadStatus:
    return offload_status(ORDERS, requested, progress, "silent" if progress is None else "")


@pytest.mark.parametrize(
    ("requested", "progress", "state", "reason", "is_complete"),
    [
        (None, PROGRESS, OffloadState.NOT_REQUESTED, "", True),
        (250, PROGRESS, OffloadState.COPYING, "", False),
        (250, replace(PROGRESS, stored_end_offset=200), OffloadState.DONE, "", True),
        (250, replace(PROGRESS, blocked="failing"), OffloadState.BLOCKED, "failing", False),
        (260, replace(PROGRESS, stored_end_offset=200), OffloadState.COPYING, "", False),
        (260, replace(PROGRESS, blocked="copy_lag"), OffloadState.COPYING, "", False),
        (
            250,
            replace(PROGRESS, stored_end_offset=200, requested_end_offset=None),
            OffloadState.COPYING,
            "",
            False,
        ),
        (250, None, OffloadState.UNKNOWN, "silent", False),
        (None, None, OffloadState.NOT_REQUESTED, "silent", True),
    ],
)
def test_status_when_a_manager_reports_then_state_of_the_newest_request(
    requested: int | None,
    progress: CopyProgress | None,
    state: OffloadState,
    reason: str,
    is_complete: bool,
) -> None:
    status = _status(requested, progress)

    assert (status.state, status.reason, status.is_complete) == (state, reason, is_complete)


def test_lines_when_partitions_differ_then_as_reviewed() -> None:
    short = [
        _status(250, replace(PROGRESS, stored_end_offset=200, lag_segments=0, lag_bytes=0)),
        _status(250, replace(PROGRESS, blocked="store_unreachable")),
        _status(None, replace(PROGRESS, lag_segments=1)),
        _status(250, None),
    ]
    far = replace(
        PROGRESS, stored_end_offset=98_765_432_109, lag_segments=123_456, lag_bytes=3 << 50
    )
    silent = "the manager cannot be reached: Connection refused (broker_id=2, "
    silent += "address=[2001:db8:85a3:8d3:1319:8a2e:370:7348]:18090). Check rest.listener."
    long = [
        *short,
        offload_status(tip(), 98_765_432_109, replace(far, blocked="failing"), ""),
        offload_status(tip(LONGEST_NAME), 98_765_432_109, None, silent),
    ]

    assert_golden(
        "offload_status.txt",
        titled(
            {
                "short names": status_lines(short, {}, width=COLUMNS),
                "long names and reasons": status_lines(long, {}, width=COLUMNS),
            }
        ),
    )


def test_lines_when_a_partition_is_streamed_then_its_last_offload_segments() -> None:
    far = offload_segment(40_000_000, OffloadSegmentStatus.OFFLOADED)
    segments = (
        *(offload_segment(n, OffloadSegmentStatus.OFFLOADED) for n in range(1, 9)),
        replace(far, begin=replace(far.begin, ledger_id=3_999_999_999)),
        offload_segment(40_000_001, OffloadSegmentStatus.FAILED),
        offload_segment(40_000_002),
    )

    lines = status_lines([_status(None, PROGRESS)], {ORDERS: segments}, width=COLUMNS)

    assert_golden("offload_status_streamed.txt", lines)


def test_json_when_a_partition_is_streamed_then_all_of_its_offload_segments() -> None:
    segments = [
        replace(offload_segment(n, OffloadSegmentStatus.OFFLOADED), objects=(f"{n}", f"{n}-index"))
        for n in range(1, 20)
    ]

    document = status_as_json(_status(None, PROGRESS), segments)

    found = document["offload_segments"]
    assert isinstance(found, list)
    assert len(found) == 19
    assert found[1] == {
        "id": "AAAAAAAAAAAAAAAAAAAAAg",
        "status": "offloaded",
        "assigned_ms": 2_000,
        "offloaded_ms": 2_500,
        "begin": {"ledger_id": 0, "entry_id": 20, "offset": 200},
        "end": {"ledger_id": 0, "entry_id": 30, "offset": 300},
        "driver_metadata": {"bucket": "b"},
        "segment_ids": ["AAAAAAAAAAAAAAAAAAAAAg"],
        "objects": ["2", "2-index"],
    }


def test_json_when_blocked_then_reason_and_lag() -> None:
    document = status_as_json(_status(250, replace(PROGRESS, blocked="failing")), ())

    assert document["state"] == "blocked"
    assert document["reason"] == "failing"
    assert (document["requested_offset"], document["stored_end_offset"]) == (250, 100)
    assert (document["lag_segments"], document["lag_bytes"]) == (2, 4096)


def test_request_when_printed_then_has_the_position() -> None:
    requested = OffloadRequest(partition=ORDERS, offset=300, stored_end_offset=100)

    assert request_line(requested) == "orders:0 requested to 300, stored to 100"
    assert request_as_json(requested)["requested_offset"] == 300
