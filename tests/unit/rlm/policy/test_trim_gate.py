from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.trim_gate import decide_trim
from rlm.policy.view import Damage, PolicyLimits
from rlmm.events.anomaly import ANOMALIES_MAX_COUNT
from rlmm.events.policy import PolicyState
from rlmm.spi import SegmentRecord
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState
from tests.metadata_builder import anomaly
from tests.unit.rlm.policy.views import (
    HOUR_MS,
    NOW_MS,
    THEM,
    Given,
    local,
    policy,
    remote,
    stored_up_to,
)


def _offset(given: Given) -> int | None:
    return decide_trim(given.view()).offset


def _reason(given: Given) -> str | None:
    blocked = decide_trim(given.view()).blocked
    return None if blocked is None else blocked.reason


ALL_STORED = Given(segments=stored_up_to(1000))


def test_trim_when_all_is_stored_then_newest_rolled_segment_stays() -> None:
    """Scenario 79, R3."""
    assert _offset(ALL_STORED) == 900
    assert _reason(ALL_STORED) == "newest_rolled_segment"


def test_trim_when_a_hole_is_in_the_store_then_stops_before_it() -> None:
    """Scenario 80."""
    given = Given(segments=(*stored_up_to(300), *(remote(s, s + 100) for s in (400, 500))))
    assert (_offset(given), _reason(given)) == (300, "not_stored")


def test_trim_when_first_segment_is_not_stored_then_nothing() -> None:
    """Scenario 105, D11: segments stored after a hole free nothing."""
    given = Given(segments=tuple(remote(s, s + 100) for s in range(100, 1000, 100)))
    assert (_offset(given), _reason(given)) == (None, "not_stored")


@pytest.mark.parametrize(
    "state",
    [
        SegmentState.COPY_SEGMENT_STARTED,
        SegmentState.DELETE_SEGMENT_STARTED,
        SegmentState.DELETE_SEGMENT_FINISHED,
    ],
)
def test_trim_when_a_segment_is_not_finished_then_stops_before_it(state: SegmentState) -> None:
    """Scenario 14, 79."""
    segments = (*stored_up_to(100), remote(100, 200, state=state))
    assert _offset(Given(segments=segments)) == 100


def test_trim_when_messages_are_older_than_epochs_then_nothing() -> None:
    given = Given(checkpoint=Lineage.of((0, 150)), stored_lineage=Lineage())
    assert (_offset(given), _reason(given)) == (None, "older_than_epochs")


def test_trim_when_stored_out_of_lineage_then_nothing() -> None:
    """Scenario 79: the stored epoch 1 is not of this log."""
    foreign = Lineage.of((1, 0))
    segments = tuple(remote(s, s + 100, epochs=foreign) for s in range(0, 1000, 100))
    given = Given(
        segments=segments, checkpoint=Lineage.of((2, 0)), stored_lineage=Lineage.of((2, 0))
    )
    assert _offset(given) is None


def test_trim_when_high_watermark_is_lower_then_stops_below_it() -> None:
    given = replace(ALL_STORED, segments=stored_up_to(500), high_watermark=500)
    assert _offset(given) == 500


def test_trim_when_log_ends_below_what_is_stored_then_blocked_as_diverged() -> None:
    """R5: a broker that lost data decides nothing."""
    given = replace(ALL_STORED, high_watermark=450)
    assert (_offset(given), _reason(given)) == (None, "diverged")


def test_trim_when_checkpoint_contradicts_stored_lineage_then_blocked() -> None:
    """R5."""
    given = replace(
        ALL_STORED,
        stored_lineage=Lineage.of((0, 0), (3, 50)),
        checkpoint=Lineage.of((1, 100)),
    )
    assert _reason(given) == "lineage_conflict"


def test_trim_when_younger_than_min_age_then_stays() -> None:
    """R3."""
    rolled = tuple(
        local(s, s + 100, age_ms=HOUR_MS if s < 200 else 1000) for s in range(0, 1000, 100)
    )
    given = replace(ALL_STORED, rolled=rolled, limits=PolicyLimits(local_trim_min_age_ms=900_000))
    assert (_offset(given), _reason(given)) == (200, "younger_than_min_age")


def test_trim_when_within_local_retention_then_nothing_is_blocked() -> None:
    given = replace(ALL_STORED, policy=policy(local_retention_ms=2 * HOUR_MS))
    assert (_offset(given), _reason(given)) == (None, None)


def test_trim_when_local_bytes_are_limited_then_keeps_at_least_that_much() -> None:
    limited = policy(local_retention_ms=-1, local_retention_bytes=4500)
    assert _offset(replace(ALL_STORED, policy=limited)) == 600


def test_trim_when_local_retention_is_as_total_then_total_decides() -> None:
    """-2 (KIP-405)."""
    as_total = policy(local_retention_ms=-2, retention_ms=-1)
    assert _offset(replace(ALL_STORED, policy=as_total)) is None


def test_trim_when_margin_is_set_then_that_much_stored_data_stays() -> None:
    given = replace(
        ALL_STORED, limits=PolicyLimits(local_trim_min_age_ms=0, local_trim_margin_bytes=2500)
    )
    assert (_offset(given), _reason(given)) == (700, "within_margin")


@pytest.mark.parametrize(
    "state", [PolicyState.ENABLING, PolicyState.DISABLING, PolicyState.DISABLED]
)
def test_trim_when_policy_is_not_active_then_blocked(state: PolicyState) -> None:
    """R9."""
    given = replace(ALL_STORED, policy=policy(state=state, local_retention_ms=0))
    assert (_offset(given), _reason(given)) == (None, "policy_not_active")


def test_trim_when_another_claimed_then_blocked() -> None:
    """R7."""
    given = replace(ALL_STORED, owner=THEM)
    assert (_offset(given), _reason(given)) == (None, "not_owner")


def test_trim_when_log_start_is_above_local_start_then_up_to_it_wherever_it_lies() -> None:
    """R3: only expiry may cut elsewhere than at a segment's base."""
    kept = policy(local_retention_ms=-1)
    assert _offset(replace(ALL_STORED, policy=kept, log_start=250)) == 250


def test_trim_when_log_start_is_above_high_watermark_then_up_to_the_high_watermark() -> None:
    kept = policy(local_retention_ms=-1)
    given = Given(policy=kept, log_start=250, high_watermark=220)
    assert _offset(given) == 220


@pytest.mark.parametrize(("lag_ms", "expected"), [(HOUR_MS, 900), (HOUR_MS + 1, None)])
def test_trim_when_stored_for_less_than_the_deletion_lag_then_stays(
    lag_ms: int, expected: int | None
) -> None:
    """PIP-17's deletion lag, by the brokers' clock."""
    stored = tuple(remote(s, s + 100, changed_ms=NOW_MS - HOUR_MS) for s in range(0, 1000, 100))
    limits = PolicyLimits(local_trim_min_age_ms=0, local_trim_deletion_lag_ms=lag_ms)
    given = Given(segments=stored, limits=limits)
    reason = "newest_rolled_segment" if expected else "within_deletion_lag"
    assert (_offset(given), _reason(given)) == (expected, reason)


@pytest.mark.parametrize(
    ("topics_ms", "managers_ms", "lag_ms"),
    [(-1, HOUR_MS, HOUR_MS), (0, HOUR_MS, 0), (2 * HOUR_MS, 0, 2 * HOUR_MS)],
)
def test_trim_when_the_topic_has_a_deletion_lag_then_that_and_not_the_managers(
    topics_ms: int, managers_ms: int, lag_ms: int
) -> None:
    """PIP-17's deletion lag, of one topic; -1 is the manager's setting."""
    limits = PolicyLimits(local_trim_min_age_ms=0, local_trim_deletion_lag_ms=managers_ms)
    stays_ms, goes_ms = NOW_MS - lag_ms + 1, NOW_MS - lag_ms

    offsets = [
        _offset(
            Given(
                policy=policy(local_retention_ms=0, local_deletion_lag_ms=topics_ms),
                segments=tuple(
                    remote(s, s + 100, changed_ms=changed_ms) for s in range(0, 1000, 100)
                ),
                limits=limits,
            )
        )
        for changed_ms in (stays_ms, goes_ms)
    ]

    assert offsets == [None if lag_ms else 900, 900]


def test_trim_when_decided_then_rule_and_values_are_reported() -> None:
    decided = decide_trim(ALL_STORED.view())
    assert decided.rule == f"local.retention.ms=0 measured={HOUR_MS} stored_end=1000"


def _reported(given: Given, *segments: SegmentRecord) -> Given:
    found = tuple(
        anomaly(record.metadata.segment_id.id.int, key=record.metadata.objects[0].key)
        for record in segments
    )
    return replace(given, anomalies=found)


def test_trim_when_a_stored_segment_has_an_anomaly_then_stops_before_it() -> None:
    """The broker may have the only whole copy of these records."""
    stored = stored_up_to(1000)
    given = _reported(Given(segments=stored), stored[3])

    blocked = decide_trim(given.view()).blocked

    assert _offset(given) == 300
    assert blocked is not None
    assert blocked.reason == "anomaly"
    assert blocked.values["object"] == stored[3].metadata.objects[0].key


def test_trim_when_another_segment_holds_what_the_damaged_one_does_then_passes() -> None:
    stored = stored_up_to(1000)
    given = Given(segments=(*stored, remote(300, 400, number=7)))

    assert _offset(_reported(given, stored[3])) == _offset(ALL_STORED)


def test_trim_when_the_manager_found_the_damage_then_a_reader_cannot_open_the_gate() -> None:
    """A reader clears the anomaly after it has read one range of the object."""
    stored = stored_up_to(1000)
    damaged = frozenset({stored[3].metadata.segment_id.id})
    view = replace(Given(segments=stored).view(), damage=Damage(damaged=damaged))

    decided = decide_trim(view)

    assert (decided.offset, decided.blocked and decided.blocked.reason) == (300, "anomaly")


def test_trim_when_no_anomaly_can_be_added_then_nothing_is_trimmed() -> None:
    """Any damaged segment may be one that nobody could report."""
    found = tuple(anomaly(number) for number in range(1, ANOMALIES_MAX_COUNT + 1))
    given = Given(segments=stored_up_to(1000), anomalies=found)

    blocked = decide_trim(given.view()).blocked

    assert _offset(given) is None
    assert blocked is not None
    assert blocked.reason == "anomalies_at_limit"
    assert _offset(replace(given, anomalies=found[1:])) == _offset(ALL_STORED)


def test_trim_when_no_anomaly_can_be_added_then_expired_data_is_still_trimmed() -> None:
    """Otherwise damaged segments would never be deleted, nor the number of anomalies fall."""
    found = tuple(anomaly(number) for number in range(1, ANOMALIES_MAX_COUNT + 1))

    assert _offset(Given(segments=stored_up_to(1000), anomalies=found, log_start=200)) == 200
