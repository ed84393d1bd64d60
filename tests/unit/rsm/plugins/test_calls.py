"""Errors of a plug-in are mapped and counted, and a call that hangs is abandoned."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from rsm.plugins.calls import CALLS_MAX, CallWatch
from rsm.plugins.given import CountedSource
from rsm.segment.errors import (
    CorruptError,
    FencedError,
    NotFoundError,
    RetriableError,
    StoppedError,
    TieredStorageError,
)
from rsm.segment.local_segment import BytesSource, WrappedSource
from tests.thread_starts import no_thread_starts
from tests.unit.rsm.plugins.failures import Failures


def raising(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """An event that ends the calls which hang."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("error", [NotFoundError("gone"), RetriableError("no")])
def test_call_when_it_raises_an_error_of_its_interface_then_it_is_passed_on(
    error: TieredStorageError,
) -> None:
    failures = Failures()

    with pytest.raises(type(error)) as raised:
        failures.calls().run("info", raising(error))

    assert raised.value is error
    assert failures.counted == []


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        SystemExit(1),
        MemoryError(),
        StopIteration(),
        asyncio.CancelledError(),
        KeyboardInterrupt(),
        GeneratorExit(),
        FencedError("lost"),
        StoppedError("given up"),
        CorruptError("damaged"),
    ],
)
def test_call_when_it_raises_any_other_error_then_it_is_retriable_and_counted(
    error: BaseException,
) -> None:
    failures = Failures()

    with pytest.raises(RetriableError, match=r"acme:Tape.*method=info"):
        failures.calls().run("info", raising(error))

    assert failures.counted == [("acme:Tape", "info")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedSource(WrappedSource):
    error: TieredStorageError

    def chunks(self) -> Iterator[memoryview]:
        raise self.error
        yield  # A generator, as other sources are.


def test_call_when_the_error_is_that_of_its_source_then_it_is_passed_on() -> None:
    failures, watch = Failures(), CallWatch()
    stopped = StoppedError("the process stops")
    sources = (
        CountedSource(
            source=StoppedSource(source=BytesSource(content=b"abc"), error=error), watch=watch
        )
        for error in (stopped, StoppedError("it still stops"))
    )

    def call() -> None:
        try:
            list(next(sources).chunks())
        finally:
            with suppress(StoppedError):
                list(next(sources).chunks())

    with pytest.raises(StoppedError) as raised:
        failures.calls().run("create_with_content", call, watch)

    assert raised.value is stopped
    assert failures.counted == []


def test_call_when_its_error_has_a_secret_then_the_secret_is_not_shown() -> None:
    with pytest.raises(RetriableError) as raised:
        Failures().calls().run("info", raising(OSError("401 for user:hush")))

    assert "401 for user:(not shown)" in str(raised.value)


@pytest.mark.parametrize(
    "error",
    [
        NotFoundError("no object for user:hush", name="a"),
        NotFoundError("no object", name="a", reason=OSError("401 for user:hush")),
        NotFoundError("no object", name="a", reason=RetriableError("401", url="https://u:hush@s")),
    ],
)
def test_call_when_its_typed_error_has_a_secret_then_the_class_is_kept_without_the_secret(
    error: NotFoundError,
) -> None:
    failures = Failures()

    with pytest.raises(NotFoundError) as raised:
        failures.calls().run("info", raising(error))

    assert "(not shown)" in str(raised.value)
    assert "hush" not in repr(raised.value) + str(raised.value.context)
    assert "hush" not in "".join(traceback.format_exception(raised.value))
    assert failures.counted == []


class WithoutFieldsError(NotFoundError):
    def __init__(self) -> None: ...


def test_call_when_its_own_error_class_does_not_work_then_it_is_retriable() -> None:
    with pytest.raises(RetriableError, match=r"WithoutFieldsError: \(no text\)"):
        Failures().calls().run("info", raising(WithoutFieldsError()))


def test_call_when_its_own_error_class_always_shows_a_secret_then_it_is_retriable() -> None:
    class LeakyError(NotFoundError):
        def __str__(self) -> str:
            return "401 for user:hush"

    with pytest.raises(RetriableError, match=r"401 for user:\(not shown\)"):
        Failures().calls().run("info", raising(LeakyError("no object")))


def test_call_when_it_hangs_then_it_is_retriable_and_counted(release: threading.Event) -> None:
    failures = Failures()

    with pytest.raises(RetriableError, match="did not return in time"):
        failures.calls(timeout_ms=30).run("info", release.wait)

    assert failures.counted == [("acme:Tape", "info")]


def test_calls_when_too_many_hang_then_the_next_one_fails_at_once(
    release: threading.Event,
) -> None:
    failures = Failures()
    calls = failures.calls(timeout_ms=1)
    for _ in range(CALLS_MAX):
        with pytest.raises(RetriableError, match="did not return in time"):
            calls.run("info", release.wait)

    with pytest.raises(RetriableError, match="too many calls"):
        calls.run("info", lambda: None)


def test_call_when_no_thread_starts_then_it_is_retriable_and_others_can_follow() -> None:
    failures = Failures()
    calls = failures.calls()

    with no_thread_starts(), pytest.raises(RetriableError, match="start new thread"):
        calls.run("info", lambda: None)

    assert calls.run("info", lambda: 1) == 1
    assert failures.counted == [("acme:Tape", "info")]


def test_call_when_it_was_abandoned_then_it_gets_no_more_of_its_source(
    release: threading.Event,
) -> None:
    watch = CallWatch()
    source = CountedSource(source=BytesSource(content=b"abc"), watch=watch)
    late: list[object] = []
    ended = threading.Event()

    def call() -> None:
        release.wait()
        try:
            late.extend(source.chunks())
        except RetriableError as error:
            late.append(error)
        ended.set()

    with pytest.raises(RetriableError, match="did not return in time"):
        Failures().calls(timeout_ms=30).run("create_with_content", call, watch)
    release.set()

    assert ended.wait(30)
    assert [str(each) for each in late] == ["the call was abandoned: it took too long"]


def test_call_when_its_source_is_slow_then_the_time_of_the_source_does_not_count(
    release: threading.Event,
) -> None:
    class Slow:
        length_bytes = 6

        def chunks(self) -> Iterator[memoryview]:
            for piece in (b"abc", b"def"):
                release.wait(0.2)
                yield memoryview(piece)

    watch = CallWatch()
    source = CountedSource(source=Slow(), watch=watch)

    content = (
        Failures()
        .calls(timeout_ms=100)
        .run("create_with_content", lambda: b"".join(map(bytes, source.chunks())), watch)
    )

    assert content == b"abcdef"


def test_items_when_one_raises_then_those_before_it_are_yielded() -> None:
    failures = Failures()

    def items() -> Iterator[int]:
        yield 1
        raise KeyError(2)

    found = failures.calls().items("list", items)

    assert next(found) == 1
    with pytest.raises(RetriableError, match="method=list"):
        next(found)
    assert failures.counted == [("acme:Tape", "list")]
