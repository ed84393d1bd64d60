from __future__ import annotations

import pytest

from rlm.policy.resources.disk_forecast import DiskSample, full_in_ms


@pytest.mark.parametrize(
    ("used", "left_ms"),
    [
        ([], None),
        ([100], None),
        ([1_000], 0),
        ([100, 100], None),
        ([200, 100], None),
        ([100, 200], 8_000),
        ([100, 400, 300], 7_000),
        ([900, 1_100], 0),
    ],
)
def test_forecast_when_a_disk_of_1000_bytes_fills_then_by_its_mean_rate(
    used: list[int], left_ms: int | None
) -> None:
    """One sample each second."""
    samples = [DiskSample(1_000 * number, each) for number, each in enumerate(used)]

    assert full_in_ms(samples, 1_000) == left_ms
