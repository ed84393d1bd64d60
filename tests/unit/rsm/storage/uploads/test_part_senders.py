from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import ContentSource, PartBounds
from rsm.storage.uploads.part_senders import PartSenders, UploadRoom
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


def test_send_when_parts_are_taken_then_they_are_not_sent_and_count_as_accepted(
    senders: PartSenders,
) -> None:
    source = CountingSource(pieces=(b"abcdefghij",))
    reader = PartReader(source, "a")
    taken: list[bytes] = []
    parts: dict[int, bytes] = {}

    def take(content: bytearray) -> bool:
        taken.append(bytes(content))
        return len(taken) < 3

    senders.send(
        reader,
        senders.lengths(source, reader),
        lambda number, content: parts.update({number: bytes(content)}),
        take,
    )

    assert taken == [b"abcd", b"efgh", b"ij"]
    assert parts == {3: b"ij"}
    assert source.accepted == [4, 4, 2]


def test_send_when_taking_a_part_fails_then_its_error_and_its_room_is_free(
    senders: PartSenders,
) -> None:
    def fail(_content: bytearray) -> bool:
        raise RetriableError("the copy failed")

    for _ in range(8):
        source = UnsizedSource(source=source_of(b"abcdefghij"))
        reader = PartReader(source, "a")
        with pytest.raises(RetriableError, match="the copy failed"):
            senders.send(reader, senders.lengths(source, reader), lambda *_: None, fail)

    assert sent(senders, UnsizedSource(source=source_of(b"abcdefgh"))) == [b"abcd", b"efgh"]


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
    """The reader does not wait for the next part, which a slow partition may fill much later."""
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


def taking(room: UploadRoom, size_bytes: int, taken: list[int]) -> threading.Thread:
    """Start a thread that waits for room, and adds the size to `taken` when it has room."""

    def take() -> None:
        room.take(size_bytes)
        taken.append(size_bytes)

    thread = threading.Thread(target=take)
    thread.start()
    return thread


def test_take_when_the_room_is_full_then_waits_until_enough_is_given_back() -> None:
    room, taken = UploadRoom(100), list[int]()
    room.take(60)
    room.take(40)
    waiting = taking(room, 50, taken)

    room.give_back(40)
    assert not taken
    room.give_back(60)

    waiting.join(30)
    assert taken == [50]


def test_take_when_one_is_larger_than_the_room_then_it_is_alone() -> None:
    room, taken = UploadRoom(100), list[int]()
    room.take(500)

    waiting = taking(room, 1, taken)
    room.give_back(500)

    waiting.join(30)
    assert taken == [1]


def test_take_when_a_large_one_waits_then_later_small_ones_do_not_pass() -> None:
    room, taken = UploadRoom(100), list[int]()
    room.take(60)
    large = taking(room, 90, taken)
    wait_until(lambda: len(room._waiting) == 1, describe="the large one waits")
    small = taking(room, 10, taken)
    wait_until(lambda: len(room._waiting) == 2, describe="the small one waits")

    room.give_back(60)

    large.join(30)
    small.join(30)
    assert taken == [90, 10]


def test_take_when_the_room_is_within_a_full_one_then_waits_for_both() -> None:
    outer, taken = UploadRoom(100), list[int]()
    inner = UploadRoom(50, within=outer)
    outer.take(80)
    waiting = taking(inner, 30, taken)
    wait_until(lambda: len(outer._waiting) == 1, describe="the inner room waits for the outer one")

    outer.give_back(80)

    waiting.join(30)
    assert taken == [30]
    inner.give_back(30)
    outer.take(100)


def test_take_when_the_inner_room_is_full_then_the_rest_of_the_outer_one_is_free() -> None:
    outer, taken = UploadRoom(100), list[int]()
    inner = UploadRoom(50, within=outer)
    inner.take(40)
    waiting = taking(inner, 30, taken)
    wait_until(lambda: len(inner._waiting) == 1, describe="the inner room is full")

    outer.take(60)
    assert not taken
    outer.give_back(60)
    inner.give_back(40)

    waiting.join(30)
    assert taken == [30]
