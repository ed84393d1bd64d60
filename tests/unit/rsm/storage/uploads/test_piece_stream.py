from __future__ import annotations

import pytest

from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import PartBounds, parts_of
from rsm.storage.uploads.piece_stream import PieceBuffer, PieceStream, PushedContent
from tests.thread_starts import no_thread_starts


def reading(stream: PushedContent[bytes]) -> bytes:
    return b"".join(bytes(piece) for piece in stream.chunks())


def started() -> PieceStream[bytes]:
    stream = PieceStream[bytes]()
    stream.start(lambda: reading(stream), name="reader")
    return stream


def test_append_when_it_returns_then_the_buffer_can_be_used_again() -> None:
    stream = started()
    buffer = bytearray(2)

    for number in range(50):
        buffer[:] = b"%02d" % number
        stream.append(memoryview(buffer))
        buffer[:] = b"??"

    assert stream.finish() == b"".join(b"%02d" % number for number in range(50))


def test_finish_when_nothing_was_appended_then_the_reader_sees_the_end() -> None:
    assert started().finish() == b""


def test_append_when_the_request_failed_then_its_error_each_time() -> None:
    stream = PieceStream[bytes]()

    def fail() -> bytes:
        next(stream.chunks())
        raise RetriableError("the store broke")

    stream.start(fail, name="reader")

    for _ in range(2):
        with pytest.raises(RetriableError, match="the store broke"):
            stream.append(memoryview(b"a"))
    with pytest.raises(RetriableError, match="the store broke"):
        stream.finish()


def test_append_when_the_request_failed_before_any_piece_then_its_error() -> None:
    stream = PieceStream[bytes]()

    def fail() -> bytes:
        raise RetriableError("the store is away")

    stream.start(fail, name="reader")

    with pytest.raises(RetriableError, match="the store is away"):
        stream.append(memoryview(b"a"))


def test_abort_when_the_reader_waits_then_it_fails_with_the_reason_and_has_ended() -> None:
    stream = PieceStream[bytes]()
    seen: list[str] = []

    def note() -> bytes:
        try:
            return reading(stream)
        except RetriableError as error:
            seen.append(error.message)
            raise

    stream.start(note, name="reader")
    stream.append(memoryview(b"a"))

    stream.abort(RetriableError("given up"))
    stream.abort(RetriableError("once more"))

    assert seen == ["given up"]


def test_append_when_the_content_was_interrupted_then_it_raises_the_error() -> None:
    stream = started()
    stream.append(memoryview(b"a"))

    stream.interrupt(RetriableError("a part failed"))
    stream.interrupt(RetriableError("another part failed"))

    with pytest.raises(RetriableError, match="a part failed"):
        stream.append(memoryview(b"b"))
    with pytest.raises(RetriableError, match="a part failed"):
        stream.finish()


def test_chunks_when_read_again_after_the_end_then_nothing_more() -> None:
    stream = PieceStream[bytes]()
    stream.start(lambda: reading(stream) + reading(stream), name="reader")
    stream.append(memoryview(b"a"))

    assert stream.finish() == b"a"


def buffered() -> PieceBuffer[bytes]:
    buffer = PieceBuffer[bytes]()
    buffer.start(lambda: reading(buffer), name="reader")
    return buffer


def reading_of(buffer: PieceBuffer[bytes], accepted: list[int]) -> bytes:
    content = b""
    for piece in buffer.chunks():
        content += bytes(piece)
        if accepted:
            buffer.acknowledge(accepted.pop(0))
    return content


def test_add_when_nothing_is_accepted_then_it_never_waits_and_all_is_buffered() -> None:
    buffer = buffered()

    for _ in range(50):
        buffer.add(bytearray(b"abc"))

    assert buffer.buffered_bytes == 150
    assert buffer.finish() == b"abc" * 50


def test_wait_when_enough_is_accepted_then_it_returns() -> None:
    buffer = PieceBuffer[bytes]()
    accepted = [3, 3]
    buffer.start(lambda: reading_of(buffer, accepted), name="reader")
    for _ in range(3):
        buffer.add(bytearray(b"abc"))

    buffer.wait_until(3, timeout_s=30)

    assert buffer.buffered_bytes == 3
    assert buffer.finish() == b"abc" * 3


def test_wait_when_the_time_is_over_then_it_returns() -> None:
    buffer = buffered()
    buffer.add(bytearray(b"abc"))

    buffer.wait_until(0, timeout_s=0.01)

    assert buffer.buffered_bytes == 3
    buffer.finish()


def test_add_when_the_request_failed_then_its_error_and_no_wait() -> None:
    buffer = PieceBuffer[bytes]()

    def fail() -> bytes:
        next(buffer.chunks())
        raise RetriableError("the store broke")

    buffer.start(fail, name="reader")
    buffer.add(bytearray(b"abc"))
    buffer.wait_until(0, timeout_s=30)

    for call in (buffer.check, buffer.finish, lambda: buffer.add(bytearray(b"a"))):
        with pytest.raises(RetriableError, match="the store broke"):
            call()


def test_result_when_the_request_runs_then_after_its_end() -> None:
    buffer = buffered()
    buffer.add(bytearray(b"abc"))
    with pytest.raises(TimeoutError):
        buffer.result(timeout_s=0.01)

    buffer.end()

    assert buffer.result(timeout_s=30) == b"abc"


def test_buffer_when_a_store_asks_for_its_parts_then_each_piece_is_one() -> None:
    assert parts_of(PieceBuffer[bytes]()) is PartBounds.EACH_CHUNK


def test_start_when_no_thread_starts_then_it_is_the_error_of_the_request() -> None:
    stream = PieceStream[bytes]()

    with no_thread_starts(), pytest.raises(RetriableError, match="cannot start the upload"):
        stream.start(lambda: reading(stream), name="reader")

    for call in (stream.finish, lambda: stream.append(memoryview(b"a"))):
        with pytest.raises(RetriableError, match="cannot start the upload"):
            call()
    stream.abort(RetriableError("given up"))
