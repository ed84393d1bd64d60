"""Chains of futures."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from weakref import ref

import pytest

from rlm.gateway.remote.future_chain import Chain, run_chain


class Value:
    """Something large."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def waiting_for(awaited: Future[Value]) -> Chain[Value, Value]:
    return (yield awaited)


def unwanted(_: Value) -> None:
    raise AssertionError("somebody wants it")


@pytest.mark.parametrize("waits", [False, True])
def test_result_when_its_last_user_has_gone_then_it_is_gone_too(*, waits: bool) -> None:
    """Results refer to chunks, whose memory must not wait for the garbage collector."""
    awaited: Future[Value] = Future()
    value = Value()
    known = ref(value)
    with no_garbage_collection():
        if not waits:
            awaited.set_result(value)
        result = run_chain(waiting_for(awaited), unwanted=unwanted)
        if waits:
            awaited.set_result(value)
        assert result.result(0) is value

        del value, result, awaited

        assert known() is None


def test_result_when_cancelled_then_what_is_waited_for_is_cancelled() -> None:
    awaited: Future[Value] = Future()

    result = run_chain(waiting_for(awaited), unwanted=unwanted)

    assert result.cancel()
    assert awaited.cancelled()
