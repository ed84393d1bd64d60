"""The follower's thread, and how it reports a step that never returns."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from rlmm.follow.follower_thread import FollowerThread
from tests.fakes.clock import FakeClock
from tests.services.waiting import wait_until

_TEN_MINUTES_MS = 600_000
_DEADLINE_S = 30.0


class _Steps:
    """Each step waits until it is allowed to return."""

    def __init__(self) -> None:
        self.began = 0
        self.returns = Event()

    def step(self) -> int:
        self.began += 1
        assert self.returns.wait(_DEADLINE_S)
        return 1


@pytest.fixture
def steps() -> Iterator[_Steps]:
    """Steps that return at the latest when the test ends."""
    steps = _Steps()
    yield steps
    steps.returns.set()


def test_thread_when_a_step_does_not_return_then_hangs_after_ten_minutes(steps: _Steps) -> None:
    clock = FakeClock()
    thread = FollowerThread(steps, clock)
    assert not thread.is_hanging()
    thread.start()
    wait_until(lambda: steps.began == 1)

    clock.advance(_TEN_MINUTES_MS)
    assert not thread.is_hanging()
    clock.advance(1)
    assert thread.is_hanging()

    steps.returns.set()
    wait_until(lambda: not thread.is_hanging())
    thread.request_stop()
    thread.join(_DEADLINE_S)


def test_thread_when_it_was_asked_to_stop_then_does_not_count_as_hanging(steps: _Steps) -> None:
    clock = FakeClock()
    thread = FollowerThread(steps, clock)
    thread.start()
    wait_until(lambda: steps.began == 1)
    clock.advance(_TEN_MINUTES_MS + 1)

    thread.request_stop()

    assert not thread.is_hanging()


def test_thread_when_never_started_then_does_not_hang(steps: _Steps) -> None:
    clock = FakeClock()
    thread = FollowerThread(steps, clock)

    clock.advance(_TEN_MINUTES_MS + 1)

    assert not thread.is_hanging()
