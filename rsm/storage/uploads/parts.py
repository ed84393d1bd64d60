"""Reads a source of bytes once, in parts of any length."""

from __future__ import annotations

from crc32c import crc32c

from rsm.segment.errors import CorruptError
from rsm.segment.local_segment import ContentSource, acknowledge, interrupt_of, reuse_of


class PartReader:
    """Represents one pass over `source`; `checksum` is the CRC32C of the bytes read.

    Not thread-safe, except `acknowledge` and `interrupt`. With `accepts_as_read`, a chunk counts as
    accepted by the store when the reader needs the next chunk. A store needs this if its parts may
    be larger than the source's buffer. A chunk at the end of a part then counts when the caller has
    sent that part and reads the next.
    """

    def __init__(self, source: ContentSource, name: str, *, accepts_as_read: bool = False) -> None:
        self._accepts_as_read = accepts_as_read
        self._source = source
        self._views = source.chunks()
        self._rest = memoryview(b"")
        self._name = name
        self._interrupt = interrupt_of(source)
        self._length_bytes = source.length_bytes
        # The reader acknowledges these bytes before it requests the next chunk, because the source
        # may wait for that.
        self._due_bytes = 0
        self.reuse = reuse_of(source)
        self.read_bytes = 0
        self.checksum = 0

    @property
    def left_bytes(self) -> int | None:
        """Return the announced length minus the bytes read; None if no length was announced."""
        return None if self._length_bytes is None else self._length_bytes - self.read_bytes

    @property
    def is_pushed(self) -> bool:
        """Return whether a writer pushes the content; a read may then wait long."""
        return self._interrupt is not None

    def next_chunk_bytes(self) -> int:
        """Return the length of the next chunk, or of what is left of it; 0 at the source's end."""
        while not self._rest:
            if self._due_bytes:
                self.acknowledge(self._due_bytes)
                self._due_bytes = 0
            view = next(self._views, None)
            if view is None:
                return 0
            self._rest = memoryview(view).cast("B")
        return len(self._rest)

    def read(self, length_bytes: int) -> bytearray:
        """Read the next `length_bytes`, at most `left_bytes`.

        Returns fewer bytes only at the end of a source that announced no length. After the last
        byte of an announced length, also reads the source to its end. Raises the errors of the
        source, and CorruptError if the source ends earlier or later than announced.
        """
        content = bytearray(length_bytes)
        filled = 0
        while filled < length_bytes and self.next_chunk_bytes():
            piece = self._rest[: length_bytes - filled]
            content[filled : filled + len(piece)] = piece
            self._rest = self._rest[len(piece) :]
            filled += len(piece)
            if self._accepts_as_read:
                self._due_bytes += len(piece)
        if filled < length_bytes:
            if self._length_bytes is not None:
                raise self._other_length()
            del content[filled:]
        self.read_bytes += filled
        self.checksum = crc32c(content, self.checksum)
        if self.left_bytes == 0:
            self._require_end()
        return content

    def acknowledge(self, length_bytes: int) -> None:
        """Report to the source that the store accepted `length_bytes` more. Thread-safe."""
        acknowledge(self._source, length_bytes)

    def interrupt(self, error: BaseException) -> None:
        """End the content with a part's `error` if a writer pushes it. Thread-safe."""
        if self._interrupt is not None:
            self._interrupt(error)

    def _require_end(self) -> None:
        """Read to the source's end, because the source may report invalid content only there."""
        if self.next_chunk_bytes():
            raise self._other_length()

    def _other_length(self) -> CorruptError:
        return CorruptError(
            "the source's length differs from the announced length",
            name=self._name,
            announced_bytes=self._length_bytes,
        )
