"""Joins objects with a multipart upload whose parts the store copies.

S3 accepts no part below 5 MiB except the last, so the client reads and sends shorter content.
Memory: twice that length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rsm.segment.ranges import ByteRange
from rsm.storage.s3.settings import MIN_PART_BYTES

_COPY_BYTES = 1 << 30

ReadRange = Callable[[str, ByteRange], bytes]


class PartReceiver(Protocol):
    """Receives numbered parts; see rsm.storage.s3.multipart.MultipartUpload."""

    def put(self, number: int, content: bytes | bytearray) -> None:
        """Send a part."""

    def copy(self, number: int, source: str, positions: ByteRange, *, etag: str) -> str | None:
        """Have the store copy a range of an object that still has this `etag`.

        Returns the checksum of the part, or None if the store returns none.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedObject:
    """Represents an object to join, as it was before the join."""

    name: str
    length_bytes: int
    etag: str
    metadata: Mapping[str, str]


def send_joined(
    upload: PartReceiver, objects: Sequence[JoinedObject], read_range: ReadRange
) -> None:
    """Send the content of `objects` to `upload` in their order."""
    number = 0
    short = bytearray()
    for joined in objects:
        position = 0
        while position < joined.length_bytes:
            left_bytes = joined.length_bytes - position
            if short or left_bytes < MIN_PART_BYTES:
                step_bytes = min(left_bytes, MIN_PART_BYTES - len(short))
                short += read_range(joined.name, _range(position, step_bytes))
                if len(short) == MIN_PART_BYTES:
                    number += 1
                    upload.put(number, short)
                    short = bytearray()
            else:
                step_bytes = min(left_bytes, _COPY_BYTES)
                number += 1
                upload.copy(number, joined.name, _range(position, step_bytes), etag=joined.etag)
            position += step_bytes
    if short or not number:
        upload.put(number + 1, short)


def _range(position: int, length_bytes: int) -> ByteRange:
    return ByteRange(start_position=position, end_position=position + length_bytes)
