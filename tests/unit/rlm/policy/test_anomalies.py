"""What a table shows of stored objects on record as damaged."""

from __future__ import annotations

import pytest

from rlm.policy.anomalies import anomalies_text
from rlmm.anomaly import Anomaly, AnomalyKind
from tests.metadata_builder import anomaly

LOST = anomaly(1)
ACCEPTED = anomaly(1, kind=AnomalyKind.LOSS_ACCEPTED)
OTHER = anomaly(1, key="orders/7.meta")


@pytest.mark.parametrize(
    ("anomalies", "text"),
    [
        ((), ""),
        ((LOST,), "missing: orders/7.log"),
        ((LOST, ACCEPTED), "missing: orders/7.log"),
        ((LOST, ACCEPTED, OTHER), "missing: orders/7.log and 1 more"),
    ],
)
def test_text_when_a_loss_is_accepted_then_each_object_counts_once(
    anomalies: tuple[Anomaly, ...], text: str
) -> None:
    assert anomalies_text(anomalies) == text
