from __future__ import annotations

import pytest

from rsm.segment.errors import RetriableError
from rsm.storage.uploads.piece_stream import PieceStream


def reading(stream: PieceStream[bytes]) -> bytes:
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


def test_chunks_when_read_again_after_the_end_then_nothing_more() -> None:
    stream = PieceStream[bytes]()
    stream.start(lambda: reading(stream) + reading(stream), name="reader")
    stream.append(memoryview(b"a"))

    assert stream.finish() == b"a"
