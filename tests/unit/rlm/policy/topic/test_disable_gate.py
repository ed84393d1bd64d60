"""R9: what disabling puts at risk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.candidates import Lag
from rlm.policy.topic.disable_gate import LocalExtent, RecordsAtRisk, RiskReason, records_at_risk
from rlmm.state.partition_state import PartitionState
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import anomaly
from tests.unit.rlm.policy.views import LINEAGE, TIP, US, stored_up_to

NO_LAG = Lag(segments=0, bytes=0)
TAKEN = PartitionState(owner=US, lineage=LINEAGE)


def at_risk(
    *,
    state: PartitionState = TAKEN,
    stored_to: int = 900,
    lag: Lag | None = NO_LAG,
    local_start: int = 0,
    kept_from: int = 0,
    is_size_limited: bool = False,
) -> RecordsAtRisk | None:
    return records_at_risk(
        TIP,
        state=state,
        segments=(record.metadata for record in stored_up_to(stored_to)),
        extent=LocalExtent(
            local_start_offset=local_start,
            end_offset=1050,
            kept_from_offset=kept_from,
            is_size_limited=is_size_limited,
        ),
        lag=lag,
    )


def test_partition_when_all_rolled_is_stored_and_the_rest_is_young_then_nothing_is_at_risk() -> (
    None
):
    assert at_risk(kept_from=900) is None


def test_partition_when_rolled_segments_are_not_stored_then_names_offsets_and_bytes() -> None:
    risk = at_risk(lag=Lag(segments=1, bytes=4096))

    assert risk is not None
    assert (risk.offsets, risk.size_bytes) == (OffsetRange(start_offset=900, end_offset=1050), 4096)
    assert str(risk) == "partition 0 900..1050 (4096 bytes): rolled segments are not stored yet"


def test_partition_when_active_segment_is_past_the_restored_retention_then_at_risk() -> None:
    risk = at_risk(kept_from=1000)

    assert risk is not None
    assert risk.reason is RiskReason.EXPIRED
    assert risk.offsets == OffsetRange(start_offset=900, end_offset=1000)
    assert str(risk).startswith("partition 0 900..1000: older than the retention")


def test_partition_when_no_manager_answers_then_all_that_is_not_stored_is_at_risk() -> None:
    risk = at_risk(lag=None)

    assert risk is not None
    assert risk.reason is RiskReason.NOT_KNOWN


def test_partition_when_no_manager_ever_took_it_then_is_as_it_was_before() -> None:
    assert at_risk(state=PartitionState(), stored_to=0, lag=None) is None


def test_partition_when_never_taken_and_size_is_limited_then_at_risk() -> None:
    assert at_risk(state=PartitionState(), stored_to=0, lag=None, is_size_limited=True) is not None


def test_partition_when_stored_end_lies_below_local_start_then_counts_from_there() -> None:
    risk = at_risk(local_start=950, lag=Lag(segments=1, bytes=1))

    assert risk is not None
    assert risk.offsets.start_offset == 950


@pytest.mark.parametrize("lag", [None, NO_LAG])
def test_partition_when_everything_is_stored_then_nothing_is_at_risk(lag: Lag | None) -> None:
    assert at_risk(stored_to=1100, lag=lag, kept_from=1050) is None


@pytest.mark.parametrize(
    ("is_size_limited", "kept_from", "end_offset"), [(True, 0, 900), (False, 500, 500)]
)
def test_partition_when_a_stored_copy_is_damaged_then_its_records_are_at_risk(
    *, is_size_limited: bool, kept_from: int, end_offset: int
) -> None:
    """The broker's copy is the only one that is whole."""
    damaged = stored_up_to(900)[3].metadata.segment_id.id
    state = replace(TAKEN, anomalies=(anomaly(damaged.int),))

    risk = at_risk(state=state, is_size_limited=is_size_limited, kept_from=kept_from)

    assert risk is not None
    assert risk.reason is RiskReason.DAMAGED
    assert risk.offsets == OffsetRange(start_offset=300, end_offset=end_offset)


def test_partition_when_a_damaged_copy_is_younger_than_the_retention_then_nothing_is_at_risk() -> (
    None
):
    damaged = stored_up_to(900)[3].metadata.segment_id.id
    state = replace(TAKEN, anomalies=(anomaly(damaged.int),))

    assert at_risk(state=state, kept_from=300) is None


def test_partition_when_damaged_and_no_manager_answers_then_not_known_comes_first() -> None:
    damaged = stored_up_to(900)[3].metadata.segment_id.id
    state = replace(TAKEN, anomalies=(anomaly(damaged.int),))

    risk = at_risk(state=state, lag=None)

    assert risk is not None
    assert (risk.reason, risk.offsets.start_offset) == (RiskReason.NOT_KNOWN, 300)
