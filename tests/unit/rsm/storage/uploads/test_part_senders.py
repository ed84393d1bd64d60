from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import ContentSource, PartBounds
from rsm.storage.uploads.part_senders import PartSenders
from rsm.storage.uploads.parts import PartReader
from rsm.storage.uploads.piece_stream import PieceBuffer, PieceStream
from tests.contract.sources import CountingSource, UnsizedSource, failing_source, source_of
from tests.services.waiting import wait_until


@pytest.fixture
def senders() -> Iterator[PartSenders]:
    made = PartSenders("test", part_bytes=4, memory_bytes=16, stream_memory_bytes=8)
    yield made
    made.close()


def sent(senders: PartSenders, source: ContentSource) -> list[bytes]:
    reader = PartReader(source, "a")
    parts: dict[int, bytes] = {}
    senders.send(
        reader,
        senders.lengths(source, reader),
        lambda number, content: parts.update({number: bytes(content)}),
    )
    return [parts[number] for number in sorted(parts)]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((b"abcdef", b"gh"), [b"abcd", b"efgh"]),
        ((b"abcdef", b"ghi"), [b"abcd", b"efgh", b"i"]),
        ((b"ab",), [b"ab"]),
        ((), []),
    ],
)
def test_send_when_the_length_is_unknown_then_equal_parts_and_a_rest(
    senders: PartSenders, pieces: tuple[bytes, ...], expected: list[bytes]
) -> None:
    assert sent(senders, UnsizedSource(source=source_of(*pieces))) == expected


def test_send_when_each_chunk_is_a_part_then_the_chunks_of_any_length(senders: PartSenders) -> None:
    source = UnsizedSource(
        source=source_of(b"abcdefghij", b"", b"k", b"lm"), parts=PartBounds.EACH_CHUNK
    )

    assert sent(senders, source) == [b"abcdefghij", b"k", b"lm"]


def test_send_when_a_source_of_unknown_length_breaks_then_its_error(senders: PartSenders) -> None:
    with pytest.raises(RetriableError, match="the source broke"):
        sent(senders, UnsizedSource(source=failing_source(b"abcd", b"")))


@pytest.mark.parametrize(("pieces", "is_one"), [((), True), ((b"",), True), ((b"a",), False)])
def test_is_one_part_when_the_length_is_unknown_then_only_nothing_is(
    senders: PartSenders, pieces: tuple[bytes, ...], *, is_one: bool
) -> None:
    source = UnsizedSource(source=source_of(*pieces))

    assert senders.is_one_part(source, PartReader(source, "a")) is is_one


def test_send_when_a_part_fails_then_only_the_parts_that_were_sent_are_acknowledged(
    senders: PartSenders,
) -> None:
    source = CountingSource(pieces=(b"ab", b"c", b"defg"), parts=PartBounds.EACH_CHUNK)
    reader = PartReader(source, "a")

    def send(number: int, _content: bytearray) -> None:
        if number == 3:
            raise RetriableError("the store broke")

    with pytest.raises(RetriableError):
        senders.send(reader, senders.lengths(source, reader), send)

    assert sorted(source.accepted) == [1, 2]


def test_send_when_a_part_fails_while_the_reader_waits_then_the_request_ends(
    senders: PartSenders,
) -> None:
    """A slow partition fills no other part before its rollover time."""
    content = PieceBuffer[None]()
    reader = PartReader(content, "a")

    def send(_number: int, _content: bytearray) -> None:
        raise RetriableError("the store broke")

    content.start(
        lambda: senders.send(reader, senders.lengths(content, reader), send), name="reader"
    )
    content.add(bytearray(b"abcd"))

    with pytest.raises(RetriableError, match="the store broke"):
        content.result(timeout_s=30)
    with pytest.raises(RetriableError, match="the store broke"):
        content.add(bytearray(b"e"))


def test_send_when_a_stream_has_more_parts_than_its_memory_then_a_copy_has_the_rest(
    senders: PartSenders,
) -> None:
    content = PieceBuffer[None]()
    reader = PartReader(content, "a")
    in_memory: list[int] = []
    can_send, copied = threading.Event(), list[list[bytes]]()

    def send(number: int, _content: bytearray) -> None:
        in_memory.append(number)
        can_send.wait(60)

    for _ in range(4):
        content.add(bytearray(b"abcd"))
    content.start(
        lambda: senders.send(reader, senders.lengths(content, reader), send), name="reader"
    )
    wait_until(lambda: len(in_memory) == 2, describe="the stream sends two parts")
    copy = threading.Thread(target=lambda: copied.append(sent(senders, source_of(b"efghijkl"))))
    copy.start()
    copy.join(30)
    in_memory_meanwhile = sorted(in_memory)
    can_send.set()
    content.finish()

    assert copied == [[b"efgh", b"ijkl"]]
    assert in_memory_meanwhile == [1, 2]
    assert sorted(in_memory) == [1, 2, 3, 4]


def test_send_when_as_many_streams_as_parts_wait_for_content_then_copies_and_all_streams_end(
    senders: PartSenders,
) -> None:
    streams = [PieceStream[list[bytes]]() for _ in range(2)]
    for stream in streams:
        stream.start(partial(sent, senders, stream), name="reader")
        stream.append(memoryview(b"a"))

    copies = [sent(senders, source_of(b"efghijklmno")) for _ in range(3)]
    for _ in range(10):
        for stream in streams:
            stream.append(memoryview(b"bcd"))

    assert copies == [[b"efgh", b"ijkl", b"mno"]] * 3
    assert [b"".join(stream.finish()) for stream in streams] == [b"a" + b"bcd" * 10] * 2
