"""Skips tags (KIP-482) for the scanners of Fetch and ShareFetch."""

from __future__ import annotations

from collections.abc import Callable

from rlm.wire.scanning.chunks import ChunkReader, Step
from rlm.wire.scanning.units import Data, varint_unit

UNKNOWN_TAG = 0x7F  # It takes one byte, and is far above all tags that Kafka has assigned.


class StructureScanner:
    """Relays one message in pieces of any size; a subclass adds its grammar. Not thread-safe.

    A `Step` finishes reading before it changes anything: IncompleteUnit must leave all unchanged.
    """

    def __init__(self, first: Step, after_tags: Callable[[], None], *, frame_bytes: int) -> None:
        self._tags_left = 0
        self._after_tags = after_tags
        self._reader = ChunkReader(first, frame_bytes=frame_bytes)

    def feed(self, chunk: memoryview) -> list[memoryview]:
        """Read the next bytes of the frame after its size, as `ChunkReader.feed` does."""
        return self._reader.feed(chunk)

    @property
    def passing_bytes(self) -> int:
        """Return how many of the next bytes need not be fed; most of these are records."""
        return self._reader.passing_bytes

    def skip(self, count: int) -> None:
        """Skip `count` bytes, at most `passing_bytes`, as `ChunkReader.skip` does."""
        self._reader.skip(count)

    def _end_structure(self, then: Callable[[], None]) -> None:
        """Read the tags after a structure, then continue with `then`."""
        self._after_tags = then
        self._reader.step = self._read_tag_count

    def _skip_tags(self, count: int, then: Callable[[], None]) -> None:
        if count:
            self._tags_left = count
            self._after_tags = then
            self._reader.step = self._read_tag
        else:
            then()

    def _see_tag(self, data: Data, position: int, tag: int, size_position: int) -> None:
        """Handle a tagged field whose tag is in [position, size_position); may change the tag."""

    def _read_tag_count(self, data: Data, position: int) -> int:
        tag_count, end = varint_unit(data, position)
        self._skip_tags(tag_count, self._after_tags)
        return end

    def _read_tag(self, data: Data, position: int) -> int:
        tag, size_position = varint_unit(data, position)
        size_bytes, end = varint_unit(data, size_position)
        self._see_tag(data, position, tag, size_position)
        self._reader.skip_bytes = size_bytes
        self._tags_left -= 1
        if not self._tags_left:
            self._after_tags()
        return end
