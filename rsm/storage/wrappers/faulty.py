"""Wraps a chunk storage to inject random faults, as in real stores, by a seeded plan.

The faults of one request:

    refused    the request fails and changes nothing
    unheard    the request has its effect but fails, as if its response were lost
    cut        a creation reads at most half of the source, or nothing if the length is unknown, and
               creates no chunk
    partial    delete_many decides for each name: deleted, refused or unheard
    flipped    a read returns one wrong bit

A read-only request can only be refused; `read_range` can also be flipped. Equal seeds and equal
sequences of requests cause equal faults; with several threads, the sequence varies.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage, DeleteOutcome
from rsm.storage.settings import FaultPlan
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper

_CHANGES = frozenset(
    {
        *("create_with_content", "create", "append", "truncate", "concat"),
        *("delete", "discard_uploads"),
    }
)


class FaultyChunkStorage(ChunkStorageWrapper):
    """Injects the faults of `plan` while `active()` is true.

    `active` must be thread-safe and fast.
    """

    def __init__(
        self, inner: ChunkStorage, plan: FaultPlan, *, active: Callable[[], bool] = lambda: True
    ) -> None:
        super().__init__(inner)
        self._plan = plan
        self._active = active
        self._random = random.Random(plan.seed)
        self._lock = threading.Lock()

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        if self._happens(self._plan.fail_share / 2):
            source = _CutSource(source)
        return super().create_with_content(name, source, attributes=attributes)

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        content = super().read_range(name, positions)
        if content and self._happens(self._plan.flip_share):
            return self._flip_one_bit(content)
        return content

    # The default calls `read_range`, which injects the faults.
    read_range_into = ChunkStorage.read_range_into

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        return tuple(self._delete_one(name) for name in names)

    @contextmanager
    def _request(self, operation: str, name: str) -> Iterator[None]:
        fails = self._happens(self._plan.fail_share)
        unheard = fails and operation in _CHANGES and self._happens(0.5)
        if fails and not unheard:
            raise _fault(operation, "refused")
        yield
        if unheard:
            raise _fault(operation, "unheard")

    def _delete_one(self, name: str) -> DeleteOutcome:
        refused = self._happens(self._plan.fail_share)
        error = _fault("delete_many", "partial") if refused else None
        if refused and self._happens(0.5):
            return DeleteOutcome(name=name, error=error)
        (outcome,) = self._inner.delete_many((name,))
        return DeleteOutcome(name=name, error=outcome.error or error)

    def _happens(self, share: float) -> bool:
        if share <= 0 or not self._active():
            return False
        with self._lock:
            return self._random.random() < share

    def _flip_one_bit(self, content: bytes) -> bytes:
        changed = bytearray(content)
        with self._lock:
            changed[self._random.randrange(len(changed))] ^= 1 << self._random.randrange(8)
        return bytes(changed)


@dataclass(frozen=True, slots=True)
class _CutSource:
    """Yields at most the first half of a source, in whole chunks, then raises an error."""

    source: ContentSource

    @property
    def length_bytes(self) -> int | None:
        return self.source.length_bytes

    def chunks(self) -> Iterator[memoryview]:
        left_bytes = (self.source.length_bytes or 0) // 2
        for view in self.source.chunks():
            if len(view) > left_bytes:
                break
            left_bytes -= len(view)
            yield view
        raise _fault("create_with_content", "cut")


def _fault(operation: str, fate: str) -> RetriableError:
    return RetriableError(
        "the request failed: the rehearsal injected a fault", operation=operation, fate=fate
    )
