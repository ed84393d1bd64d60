"""Sends content in parts, on its own threads, within a memory limit.

While earlier parts are being sent, it reads the next part as soon as there is room for it.

Memory: `memory_bytes`, at least one part, for all uploads together. Of that, streams use at most
`stream_memory_bytes`, at least one part. A stream is an upload of content that a writer pushes.
While a stream waits for content, it occupies the memory of one part. So at most
max(1, floor(stream_memory_bytes / part)) streams may be open at once. An additional stream could
wait for memory until one of them has a whole part or ends. Other uploads never wait for a writer,
so they always free the rest of the memory again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import chain, repeat

from rsm.segment.local_segment import ContentSource, PartBounds, parts_of
from rsm.storage.uploads.parts import PartReader

SendPart = Callable[[int, bytearray], None]
"""Sends the part with this number, from 1. Any thread may call it."""

TakePart = Callable[[bytearray], bool]
"""Receives each part in order; returns True if the part need not be sent.

The thread that reads the content calls it.
"""


class UploadRoom:
    """A budget of bytes for parts. A part larger than the budget is sent alone. Thread-safe.

    Serves callers in order of arrival, so that small parts do not overtake a large one. If
    `within` is set, each part also takes its bytes from that budget.
    """

    def __init__(self, budget_bytes: int, *, within: UploadRoom | None = None) -> None:
        self._budget_bytes = budget_bytes
        self._within = within
        self._taken_bytes = 0
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    def take(self, size_bytes: int) -> None:
        """Wait until `size_bytes` fit, and reserve them."""
        self._reserve(size_bytes)
        if self._within is None:
            return
        try:
            self._within.take(size_bytes)
        except BaseException:
            self._release(size_bytes)
            raise

    def give_back(self, size_bytes: int) -> None:
        """Release reserved bytes."""
        if self._within is not None:
            self._within.give_back(size_bytes)
        self._release(size_bytes)

    def _reserve(self, size_bytes: int) -> None:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: self._is_free_for(ticket, size_bytes))
                self._taken_bytes += size_bytes
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def _release(self, size_bytes: int) -> None:
        with self._changed:
            self._taken_bytes -= size_bytes
            self._changed.notify_all()

    def _is_free_for(self, ticket: object, size_bytes: int) -> bool:
        fits = not self._taken_bytes or self._taken_bytes + size_bytes <= self._budget_bytes
        return fits and self._waiting[0] is ticket


class PartSenders:
    """Owns the threads and the memory of a store's uploads. Thread-safe.

    `name` is the prefix of the threads' names.
    """

    def __init__(
        self, name: str, *, part_bytes: int, memory_bytes: int, stream_memory_bytes: int
    ) -> None:
        self._part_bytes = part_bytes
        self._room = UploadRoom(memory_bytes)
        self._stream_room = UploadRoom(stream_memory_bytes, within=self._room)
        self._threads = ThreadPoolExecutor(max(1, memory_bytes // part_bytes), name)

    def is_one_part(self, source: ContentSource, reader: PartReader) -> bool:
        """Return whether the content is one part, as far as is known before it is read.

        Content of unknown length, or whose chunks are its parts, is one part only if it is empty.
        """
        parts = parts_of(source)
        if not isinstance(parts, PartBounds):
            return len(parts) == 1
        if source.length_bytes is None or parts is PartBounds.EACH_CHUNK:
            return not reader.next_chunk_bytes()
        return source.length_bytes <= self._part_bytes

    def lengths(self, source: ContentSource, reader: PartReader) -> Iterator[int]:
        """Return the lengths of the source's own parts; if it has none, `part_bytes` and the rest.

        If the content's length is unknown, its last part may be shorter than returned.
        """
        parts = parts_of(source)
        if not isinstance(parts, PartBounds):
            return iter(parts)
        if source.length_bytes is None or parts is PartBounds.EACH_CHUNK:
            return self._lengths_to_the_end(reader, is_each_chunk=parts is PartBounds.EACH_CHUNK)
        # A list could be too long, because the announced length has no limit.
        full, rest_bytes = divmod(source.length_bytes, self._part_bytes)
        return chain(repeat(self._part_bytes, full), [rest_bytes] if rest_bytes else [])

    @contextmanager
    def only_part(self, reader: PartReader) -> Iterator[bytearray]:
        """Read the only part, for the caller to send; free its memory when the context ends."""
        length_bytes = reader.left_bytes or 0  # A single part of unknown length is empty.
        self._room.take(length_bytes)
        try:
            yield reader.read(length_bytes)
        finally:
            self._room.give_back(length_bytes)

    def send(
        self,
        reader: PartReader,
        lengths: Iterable[int],
        send_part: SendPart,
        take_part: TakePart = lambda _content: False,
    ) -> None:
        """Send all parts, and wait until none is in flight. Raises the first error.

        If `take_part` returns True for a part, the part keeps its number and counts as accepted.
        A failed part interrupts content that a writer pushes, so that the writer gets the error
        before it fills another part.
        """
        under_way: deque[Future[None]] = deque()
        try:
            for number, length_bytes in enumerate(lengths, start=1):
                while under_way and under_way[0].done():
                    under_way.popleft().result()
                sending = self._send_next(reader, number, length_bytes, send_part, take_part)
                if sending is not None:
                    under_way.append(sending)
            for sending in under_way:
                sending.result()
        finally:
            for sending in under_way:
                sending.cancel()
            wait(under_way)

    def close(self) -> None:
        """Cancel queued parts and wait for parts in flight. Idempotent."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _lengths_to_the_end(self, reader: PartReader, *, is_each_chunk: bool) -> Iterator[int]:
        while chunk_bytes := reader.next_chunk_bytes():
            yield chunk_bytes if is_each_chunk else self._part_bytes

    def _send_next(
        self,
        reader: PartReader,
        number: int,
        length_bytes: int,
        send_part: SendPart,
        take_part: TakePart,
    ) -> Future[None] | None:
        """Read one part when there is room for it, and start to send it.

        The room becomes free when the part was sent or failed. Returns None if `take_part` took it.
        """
        room = self._stream_room if reader.is_pushed else self._room
        room.take(length_bytes)
        try:
            content = reader.read(length_bytes)
            if take_part(content):
                reader.acknowledge(len(content))
                room.give_back(length_bytes)
                return None
            sending = self._threads.submit(_send, reader, number, content, send_part)
        except BaseException:
            room.give_back(length_bytes)
            raise
        sending.add_done_callback(lambda _sending: room.give_back(length_bytes))
        return sending


def _send(reader: PartReader, number: int, content: bytearray, send_part: SendPart) -> None:
    try:
        send_part(number, content)
    except BaseException as error:
        reader.interrupt(error)
        raise
    reader.acknowledge(len(content))
