"""The valid values of an anomaly of a stored object."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.state.anomalies import LOST_RANGES_MAX_COUNT, OBJECT_KEY_MAX_CHARS, AnomalyKind
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import anomaly

LOST = OffsetRange(start_offset=0, end_offset=1)


def test_limits_when_compared_then_those_of_what_topics_have_already() -> None:
    """With a smaller maximum, existing records would be corrupt."""
    assert (OBJECT_KEY_MAX_CHARS, LOST_RANGES_MAX_COUNT) == (4_096, 256)


def test_kinds_when_shown_then_in_lower_case() -> None:
    """Metrics and JSON have these names."""
    assert [kind.label for kind in AnomalyKind] == ["missing", "corrupt", "loss_accepted"]


@pytest.mark.parametrize("length", [1, OBJECT_KEY_MAX_CHARS])
def test_anomaly_when_its_object_has_a_key_within_the_limit_then_made(length: int) -> None:
    assert len(anomaly(key="k" * length).object_key) == length


@pytest.mark.parametrize("length", [0, OBJECT_KEY_MAX_CHARS + 1])
def test_anomaly_when_its_object_has_no_key_or_a_longer_one_then_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"it has {length} characters, expected 1 to"):
        anomaly(key="k" * length)


@pytest.mark.parametrize(("first_ms", "last_ms", "attempts"), [(0, 0, 1), (0, 1, 1), (7, 7, 2)])
def test_anomaly_when_its_times_and_attempts_are_in_order_then_made(
    first_ms: int, last_ms: int, attempts: int
) -> None:
    made = replace(anomaly(), first_ms=first_ms, last_ms=last_ms, attempts=attempts)

    assert (made.first_ms, made.last_ms, made.attempts) == (first_ms, last_ms, attempts)


@pytest.mark.parametrize(("first_ms", "last_ms", "attempts"), [(-1, 0, 1), (8, 7, 1), (7, 7, 0)])
def test_anomaly_when_its_times_or_attempts_are_not_in_order_then_refused(
    first_ms: int, last_ms: int, attempts: int
) -> None:
    with pytest.raises(ValueError, match="are invalid"):
        replace(anomaly(), first_ms=first_ms, last_ms=last_ms, attempts=attempts)


def test_anomaly_when_more_ranges_are_lost_than_the_limit_then_refused() -> None:
    most = replace(anomaly(), lost=(LOST,) * LOST_RANGES_MAX_COUNT)

    with pytest.raises(ValueError, match="has 257 ranges"):
        replace(most, lost=(*most.lost, LOST))
