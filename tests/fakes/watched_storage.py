"""A store in memory that records its reads, and can be slow, fail and return wrong bytes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping

from rsm.segment.local_segment import BytesSource
from rsm.segment.ranges import ByteRange
from rsm.storage.memory import MemoryChunkStorage


class WatchedStorage(MemoryChunkStorage):
    """`reads` are the requests so far, with errors; `most_at_once` is the most that ran together.

    The next reads raise the errors of `errors`. With `hold` every read waits until `release`.
    `begins` is called when a read begins, `carries` with the number of its bytes.
    """

    def __init__(self) -> None:
        super().__init__(wall_ms=lambda: 0)
        self.reads: list[tuple[str, ByteRange]] = []
        self.errors: deque[Exception] = deque()
        self.begins: Callable[[], None] = lambda: None
        self.carries: Callable[[int], None] = lambda _size_bytes: None
        self.most_at_once = 0
        self._at_once = 0
        self._watch_lock = threading.Lock()
        self._gate = threading.Event()
        self._gate.set()

    def hold(self) -> None:
        self._gate.clear()

    def release(self) -> None:
        self._gate.set()

    def reads_of(self, suffix: str) -> list[ByteRange]:
        """Return the ranges read of objects with this end of their name."""
        return [positions for name, positions in self.reads if name.endswith(suffix)]

    def rewrite(
        self, name: str, content: bytes, attributes: Mapping[str, str] | None = None
    ) -> None:
        """Replace an object's content; its attributes stay unless others are given."""
        kept = self.info(name).attributes
        self.delete(name)
        self.create_with_content(
            name,
            BytesSource(content=content),
            attributes=kept if attributes is None else attributes,
        )

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        with self._watch_lock:
            self.reads.append((name, positions))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            error = self.errors.popleft() if self.errors else None
        try:
            assert self._gate.wait(30)
            self.begins()
            if error is not None:
                raise error
            self.carries(len(positions))
            return super().read_range(name, positions)
        finally:
            with self._watch_lock:
                self._at_once -= 1
