"""The quota of bytes read from the store, at exact times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlm.gateway.remote.fetch_quota import FetchQuota, FetchQuotaSettings

_SETTINGS = FetchQuotaSettings(bytes_per_second=1_000, window_count=5, window_ms=1_000)


def test_throttle_when_one_window_was_given_then_waits_until_a_byte_is_there() -> None:
    """Scenario 64."""
    quota = FetchQuota(_SETTINGS, 0)
    quota.charge(1_000, 0)
    assert quota.throttle_ms(0) == 1
    quota.charge(500, 0)
    assert quota.throttle_ms(0) == 501
    assert quota.throttle_ms(501) == 0


def test_throttle_when_nothing_was_given_for_long_then_only_the_windows_are_made_up_for() -> None:
    quota = FetchQuota(_SETTINGS, 0)
    quota.charge(5_000, 60_000)
    assert quota.throttle_ms(60_000) == 1


def test_throttle_when_bytes_are_reserved_then_they_count_as_given() -> None:
    quota = FetchQuota(_SETTINGS, 0)
    assert quota.throttle_ms(0, reserved_bytes=999) == 0
    assert quota.throttle_ms(0, reserved_bytes=1_250) == 251


def test_throttle_when_unlimited_then_never() -> None:
    quota = FetchQuota(FetchQuotaSettings(), 0)
    quota.charge(1 << 50, 0)
    assert quota.throttle_ms(0, reserved_bytes=1 << 50) == 0


@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 4_000)), max_size=100))
def test_quota_when_reads_wait_for_it_then_the_rate_is_kept_over_any_time(
    reads: list[tuple[int, int]],
) -> None:
    """Except for the last response, the quota holds between any two moments."""
    quota = FetchQuota(_SETTINGS, 0)
    now_ms, total = 0, 0
    for pause_ms, size_bytes in reads:
        now_ms += pause_ms
        now_ms += quota.throttle_ms(now_ms)
        assert quota.throttle_ms(now_ms) == 0
        assert total <= _SETTINGS.bytes_per_second * (now_ms + 1_000) / 1_000
        quota.charge(size_bytes, now_ms)
        total += size_bytes
