"""Sends content in parts, with its own threads, within a limit of memory.

It reads a part while earlier ones are being sent, as soon as there is room for it.

Memory: `memory_bytes`, at least one part, for all uploads together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import chain, repeat

from rsm.segment.local_segment import ContentSource, part_lengths_of
from rsm.storage.uploads.parts import PartReader
from rsm.storage.uploads.upload_room import UploadRoom

SendPart = Callable[[int, bytearray], None]
"""Sends the part of a number, from 1 on; called by any thread."""


class PartSenders:
    """The threads and the memory of a store's uploads. Thread-safe. `name` names the threads."""

    def __init__(self, name: str, *, part_bytes: int, memory_bytes: int) -> None:
        self._part_bytes = part_bytes
        self._room = UploadRoom(memory_bytes)
        self._threads = ThreadPoolExecutor(max(1, memory_bytes // part_bytes), name)

    def is_one_part(self, source: ContentSource) -> bool:
        """Return whether the content is a single part."""
        given = part_lengths_of(source)
        return source.length_bytes <= self._part_bytes if given is None else len(given) == 1

    def lengths(self, source: ContentSource) -> Iterator[int]:
        """Return the lengths of the content's own parts; without any, equal lengths."""
        given = part_lengths_of(source)
        if given is not None:
            return iter(given)
        # Not a list: the announced length has no limit.
        full, rest_bytes = divmod(source.length_bytes, self._part_bytes)
        return chain(repeat(self._part_bytes, full), [rest_bytes] if rest_bytes else [])

    @contextmanager
    def room(self, length_bytes: int) -> Iterator[None]:
        """Reserve room for one part that the caller sends itself."""
        self._room.take(length_bytes)
        try:
            yield
        finally:
            self._room.give_back(length_bytes)

    def send(self, reader: PartReader, lengths: Iterable[int], send_part: SendPart) -> None:
        """Send all parts; return, or raise the first error, when no part is in flight."""
        under_way: deque[Future[None]] = deque()
        try:
            for number, length_bytes in enumerate(lengths, start=1):
                while under_way and under_way[0].done():
                    under_way.popleft().result()
                under_way.append(self._send_next(reader, number, length_bytes, send_part))
            for sending in under_way:
                sending.result()
        finally:
            for sending in under_way:
                sending.cancel()
            wait(under_way)

    def close(self) -> None:
        """Wait for parts in flight; idempotent."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _send_next(
        self, reader: PartReader, number: int, length_bytes: int, send_part: SendPart
    ) -> Future[None]:
        """Read one part as soon as there is room for it; its completion frees the room."""
        self._room.take(length_bytes)
        try:
            content = reader.read(length_bytes)
            sending = self._threads.submit(send_part, number, content)
        except BaseException:
            self._room.give_back(length_bytes)
            raise
        sending.add_done_callback(lambda _sending: self._room.give_back(length_bytes))
        return sending
