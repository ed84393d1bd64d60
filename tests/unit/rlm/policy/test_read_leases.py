"""Leased data is not deleted; a record of a newer version stops every decision."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.policy.plan import Plan, plan
from rlm.policy.read_leases import log_start_within_leases
from rlm.status.report import leader_report
from rlmm.events.policy import PolicyState
from rlmm.positions import MetadataPosition
from rlmm.spi import NewerRecord
from rlmm.state.partition_state import ReadLease
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.unit.rlm.policy.views import NOW_MS, Given, policy, remote, stored_up_to

# Everything stored is past its retention, and readable from 0 on.
EXPIRED = Given(
    segments=stored_up_to(900), local_start=900, trimmed=900, policy=policy(retention_ms=1)
)
BELOW_START = replace(EXPIRED, log_start=300)


def lease(start: int, end: int, *, number: int = 1, expires_ms: int = NOW_MS + 1) -> ReadLease:
    return ReadLease(
        lease_id=UUID(int=number),
        offsets=OffsetRange(start_offset=start, end_offset=end),
        expires_ms=expires_ms,
        holder="an audit",
    )


def planned(given: Given, *leases: ReadLease) -> Plan:
    return plan(replace(given, read_leases=leases).view())


def deleted(found: Plan) -> list[int]:
    return [action.record.metadata.offsets.start_offset for action in found.deletions]


def test_expiry_when_a_lease_is_ahead_then_expires_up_to_it() -> None:
    """R13: an unexpired lease keeps the segments that it covers, and none below it."""
    found = planned(EXPIRED, lease(450, 460), lease(700, 800, number=2))

    assert found.log_start is not None
    assert found.log_start.offset == 450
    assert found.expiry_blocked is not None
    assert found.expiry_blocked.reason == "read_lease"
    assert found.expiry_blocked.values["holder"] == "an audit"
    assert found.expiry_blocked.values["start_offset"] == 450


def test_expiry_when_a_lease_covers_the_log_start_then_waits() -> None:
    found = planned(EXPIRED, lease(0, 10))

    assert found.log_start is None
    assert found.expiry_blocked is not None


@pytest.mark.parametrize("blocked", [lease(0, 900, expires_ms=NOW_MS), lease(1000, 2000)])
def test_expiry_when_a_lease_expired_or_is_elsewhere_then_is_as_without(blocked: ReadLease) -> None:
    """R13: by the brokers' clock."""
    assert planned(EXPIRED, blocked) == planned(EXPIRED)


def test_expiry_when_a_lease_is_below_the_log_start_then_continues() -> None:
    """The leased records had expired before: segments stay, and the log start may move."""
    assert log_start_within_leases([lease(100, 300)], 300, 500) == (500, None)


def test_deletions_when_segments_are_leased_then_the_others_go() -> None:
    found = planned(BELOW_START, lease(150, 210))

    assert deleted(planned(BELOW_START)) == [0, 100, 200]
    assert deleted(found) == [0]
    assert found.expiry_blocked is not None


def test_deletion_that_was_started_when_leased_then_waits() -> None:
    """Readers may still read its objects."""
    started = remote(0, 100, state=SegmentState.DELETE_SEGMENT_STARTED)

    assert deleted(planned(Given(segments=(started,)))) == [0]
    assert deleted(planned(Given(segments=(started,)), lease(0, 1))) == []


def test_copy_that_did_not_finish_when_leased_then_is_deleted() -> None:
    """No reader can have read it."""
    dangling = remote(0, 100, state=SegmentState.COPY_SEGMENT_STARTED)

    assert deleted(planned(Given(segments=(dangling,)), lease(0, 100))) == [0]


def test_disabling_with_deletion_when_leased_then_the_leased_segments_stay() -> None:
    given = replace(
        EXPIRED,
        log_start=900,
        local_start=900,
        policy=policy(state=PolicyState.DISABLED, delete_remote=True),
    )

    assert deleted(planned(given, lease(500, 600))) == [0, 100, 200, 300, 400, 600, 700, 800]


def test_request_of_a_client_when_leased_then_the_log_start_follows_it() -> None:
    """R13: the broker has deleted its records; only the deletion in the store waits."""
    found = planned(replace(EXPIRED, log_start_requested=600), lease(0, 100))

    assert found.log_start is not None
    assert found.log_start.offset == 600


def test_partition_when_a_newer_version_wrote_of_it_then_nothing_is_done() -> None:
    """R14: copy, trim and delete stop, with the reason."""
    newer = NewerRecord(needs_fold_version=9, position=MetadataPosition(partition=3, offset=77))
    view = replace(
        EXPIRED, newer=newer, local_start=0, trimmed=None, segments=stored_up_to(300)
    ).view()

    found = plan(view)

    assert (found.copies, found.log_start, found.deletions, found.purges) == ((), None, (), ())
    assert found.trim.offset is None
    assert found.trim.blocked is not None
    assert found.trim.blocked.reason == "newer_record"
    assert found.trim.blocked.values["metadata_offset"] == 77
    assert "newer version" in leader_report(view, found.trim).problem
