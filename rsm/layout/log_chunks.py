"""Divides the content of a log into chunks; each chunk is an object (PDP-34). Pure.

The chunks share one pass over the content, so each one must be read to its end before the next one
is requested. A chunk ends as soon as it is full; it does not wait for more content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rsm.layout.segment_layout import ObjectContent
from rsm.segment.errors import CorruptError
from rsm.segment.local_segment import ContentSource, Interrupt, acknowledge, interrupt_of


def divided(
    content: ObjectContent, keys: Sequence[str], chunk_bytes: int
) -> Iterator[ObjectContent]:
    """Yield the content of each chunk. Only the last is shorter; an empty log has one chunk.

    The source of the last chunk raises CorruptError if the log is longer than `keys` allow.
    """
    rest = _Rest(content.source.chunks())
    for number, key in enumerate(keys):
        length_bytes = content.source.length_bytes
        is_last = number == len(keys) - 1
        if length_bytes is not None:
            is_last = is_last or length_bytes <= (number + 1) * chunk_bytes
            length_bytes -= number * chunk_bytes
            length_bytes = length_bytes if is_last else chunk_bytes
        chunk = _Chunk(
            source=content.source,
            rest=rest,
            length_bytes=length_bytes,
            limit_bytes=chunk_bytes,
            is_last=is_last,
        )
        yield replace(content, key=key, source=chunk)
        if is_last or (content.source.length_bytes is None and not rest.has_more()):
            return


class _Rest:
    """The bytes of one pass that no chunk has taken yet."""

    def __init__(self, views: Iterator[memoryview]) -> None:
        self._views = views
        self._view = memoryview(b"")

    def has_more(self) -> bool:
        """Return whether more bytes follow; may wait for them. Raises the content's errors."""
        while not self._view:
            view = next(self._views, None)
            if view is None:
                return False
            self._view = memoryview(view).cast("B")
        return True

    def take(self, most_bytes: int) -> memoryview:
        """Return the next bytes of the view that `has_more` found."""
        taken, self._view = self._view[:most_bytes], self._view[most_bytes:]
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    """One chunk as a ContentSource; a writer may push its content."""

    source: ContentSource
    rest: _Rest
    length_bytes: int | None
    limit_bytes: int
    is_last: bool

    @property
    def interrupt(self) -> Interrupt | None:
        return interrupt_of(self.source)

    def acknowledge(self, length_bytes: int) -> None:
        """Pass the store's acknowledgement on to the content."""
        acknowledge(self.source, length_bytes)

    def chunks(self) -> Iterator[memoryview]:
        """Yield the chunk's bytes. The last chunk reads the content to its end."""
        left_bytes = self.limit_bytes
        while left_bytes and self.rest.has_more():
            taken = self.rest.take(left_bytes)
            left_bytes -= len(taken)
            yield taken
        if self.is_last and self.rest.has_more():
            raise CorruptError(
                "the log is longer than planned", planned_last_chunk_bytes=self.limit_bytes
            )
