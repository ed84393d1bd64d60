"""How many anomalies of one partition may be on record."""

from __future__ import annotations

import pytest

from rlmm.events.anomaly import ANOMALIES_MAX_COUNT, AnomalyFamily, NoAnomalyRoomError
from rlmm.state.anomalies import AnomalyKind
from rlmm.state.partition_state import PartitionState
from tests import metadata_builder as build

FULL = PartitionState(
    anomalies=tuple(build.anomaly(number) for number in range(1, ANOMALIES_MAX_COUNT + 1))
)


def test_anomaly_when_the_partition_has_as_many_as_it_may_then_refused() -> None:
    event = build.anomaly_reported(build.anomaly(ANOMALIES_MAX_COUNT + 1))

    with pytest.raises(NoAnomalyRoomError, match="cannot record another anomaly"):
        AnomalyFamily().require_room(event, lambda _: FULL, 0)


def test_accepted_loss_when_the_partition_has_as_many_anomalies_then_has_room() -> None:
    """An operator can give up what fills the record."""
    event = build.anomaly_reported(build.anomaly(1, kind=AnomalyKind.LOSS_ACCEPTED))

    AnomalyFamily().require_room(event, lambda _: FULL, 0)
