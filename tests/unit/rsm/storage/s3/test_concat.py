from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from rsm.segment.ranges import ByteRange
from rsm.storage.s3.concat import JoinedObject, send_joined
from rsm.storage.s3.settings import MIN_PART_BYTES as MIN


@dataclass(slots=True)
class ListedUpload:
    """An upload that only records its parts: (bytes sent) or (object, range copied)."""

    parts: list[int | tuple[str, ByteRange]] = field(default_factory=list)

    def put(self, number: int, content: bytes | bytearray) -> None:
        self.parts.append(len(content))
        assert number == len(self.parts)

    def copy(self, number: int, source: str, positions: ByteRange, *, etag: str) -> None:
        assert etag == f"etag-{source}"
        self.parts.append((source, positions))
        assert number == len(self.parts)


def joined(*lengths: int) -> tuple[JoinedObject, ...]:
    return tuple(
        JoinedObject(name=f"{n}", length_bytes=length, etag=f"etag-{n}", metadata={})
        for n, length in enumerate(lengths)
    )


def span(start: int, end: int) -> ByteRange:
    return ByteRange(start_position=start, end_position=end)


@pytest.mark.parametrize(
    ("lengths", "parts"),
    [
        ((0, 0), [0]),
        ((3, 4), [7]),
        ((MIN, 4), [("0", span(0, MIN)), 4]),
        ((4, MIN), [MIN, 4]),
        ((4, 2 * MIN), [MIN, ("1", span(MIN - 4, 2 * MIN))]),
        ((MIN, MIN + 1), [("0", span(0, MIN)), ("1", span(0, MIN + 1))]),
        ((1 << 30, 1), [("0", span(0, 1 << 30)), 1]),
        (((1 << 30) + 7, MIN), [("0", span(0, 1 << 30)), MIN, 7]),
    ],
)
def test_joining_when_pieces_are_short_then_no_part_but_the_last_is(
    lengths: tuple[int, ...], parts: list[int | tuple[str, ByteRange]]
) -> None:
    upload = ListedUpload()

    send_joined(upload, joined(*lengths), lambda _name, positions: bytes(len(positions)))

    assert upload.parts == parts
