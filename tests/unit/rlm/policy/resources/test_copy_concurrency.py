"""Scenario 95: the number of concurrent copies follows their throughput, in models of stores."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.policy.resources.copy_concurrency import CopyConcurrency, CopyWindow, adjusted

MOST = 10
WINDOW_MS = 2_000
Rate = Callable[[int], float]


def distant(limit: int) -> float:
    """Model copies that wait for responses: twice as many have twice the throughput."""
    return 10_000.0 * limit


def saturated(_limit: int) -> float:
    """Model a link that one copy alone saturates."""
    return 100_000.0


def contended(limit: int) -> float:
    """Model copies that slow each other: more of them have less throughput."""
    return 100_000.0 / (1 + 0.1 * (limit - 1))


def knee(limit: int) -> float:
    """Model a link that four copies saturate."""
    return 25_000.0 * min(limit, 4)


def window(rate: float, *, is_saturated: bool = True, is_refused: bool = False) -> CopyWindow:
    return CopyWindow(
        moved_bytes=int(rate * WINDOW_MS),
        elapsed_ms=WINDOW_MS,
        is_saturated=is_saturated,
        is_refused=is_refused,
    )


def run(now: CopyConcurrency, rate: Rate, windows: int = 40) -> tuple[CopyConcurrency, list[int]]:
    limits = []
    for _ in range(windows):
        now = adjusted(now, window(rate(now.limit)))
        limits.append(now.limit)
    return now, limits


@pytest.mark.parametrize(
    ("rate", "allowed"),
    [
        (distant, range(MOST - 1, MOST + 1)),
        (saturated, range(1, 3)),
        (contended, range(1, 3)),
        (knee, range(3, 6)),
    ],
)
def test_limit_when_a_store_stays_as_it_is_then_comes_to_what_it_is_worth(
    rate: Rate, allowed: range
) -> None:
    _, limits = run(CopyConcurrency.beginning(MOST), rate)
    assert set(limits[20:]) <= set(allowed)


def test_limit_when_the_store_is_distant_then_all_places_within_few_windows() -> None:
    _, limits = run(CopyConcurrency.beginning(MOST), distant)
    assert limits[:4] == [8, 10, 10, 10]


def test_limit_when_the_store_becomes_ten_times_slower_to_answer_then_rises() -> None:
    """A few copies saturated the link; now each is slower, and it takes more of them."""
    now, before = run(CopyConcurrency.beginning(MOST), saturated)
    _, after = run(now, lambda limit: distant(limit) / 10, windows=80)
    assert (before[-1] <= 2, max(after) >= MOST - 1) == (True, True)


def test_limit_when_the_store_fills_up_then_comes_down_again() -> None:
    now, before = run(CopyConcurrency.beginning(MOST), distant)
    _, after = run(now, saturated, windows=80)
    assert (before[-1] >= MOST - 1, after[-1] <= 2) == (True, True)


def test_limit_when_the_store_refuses_then_halved_each_time_but_one() -> None:
    """Scenario 94: the request rate falls."""
    now = CopyConcurrency(limit=10, most=MOST)
    limits = []
    for _ in range(5):
        now = adjusted(now, window(1.0, is_refused=True))
        limits.append(now.limit)
    assert limits == [5, 2, 1, 1, 1]


def test_limit_when_it_was_refused_then_tries_no_more_for_some_windows() -> None:
    now = adjusted(CopyConcurrency(limit=8, most=MOST), window(1.0, is_refused=True))
    _, limits = run(now, distant, windows=4)
    assert limits == [4, 4, 4, 5]


def test_limit_when_nobody_waits_for_a_place_then_stays() -> None:
    """The throughput of a few partitions shows nothing about more of them."""
    now = CopyConcurrency.beginning(MOST)
    for rate in (10.0, 1000.0, 0.0):
        now = adjusted(now, window(rate, is_saturated=False))
    assert now.limit == 4


def test_limit_when_all_hang_then_the_others_get_places() -> None:
    """Scenario 12: copies that hang must not delay the measurement."""
    now = CopyConcurrency.beginning(MOST)
    for _ in range(20):
        now = adjusted(now, window(0.0))
    assert now.limit == MOST


@given(
    st.integers(1, 20),
    st.lists(st.tuples(st.floats(0, 1e6), st.booleans(), st.booleans()), max_size=60),
)
def test_limit_whatever_is_seen_then_at_least_one_and_no_more_than_allowed(
    most: int, seen: list[tuple[float, bool, bool]]
) -> None:
    now = CopyConcurrency.beginning(most)
    for rate, is_saturated, is_refused in seen:
        now = adjusted(now, window(rate, is_saturated=is_saturated, is_refused=is_refused))
        assert 1 <= now.limit <= most
