"""Uploads whose request is in flight when their process dies or gives them up.

They may complete after all processes count the attempt as dead, but not after its deadline. Until
its deadline, an attempt may write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.local_segment import ContentSource, WrappedSource
from rsm.storage.chunk_storage import ChunkStorage
from tests.fakes.effects import Effects, ProcessCrashError
from tests.fakes.seams import SeamChunkStorage


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An object that may still be written until `deadline_ms` by the broker's time."""

    name: str
    content: bytes
    deadline_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched(WrappedSource):
    """A source that notes when a pass begins and ends."""

    source: ContentSource
    passes: list[str] = field(default_factory=list)

    @property
    def is_read_partly(self) -> bool:
        """Whether a pass has begun and not ended; the rest of the source is no whole object."""
        return self.passes[-1:] == ["begins"]

    def chunks(self) -> Iterator[memoryview]:
        self.passes.append("begins")
        yield from self.source.chunks()
        self.passes.append("ends")


class LateStorage(SeamChunkStorage):
    """Calls `sent` with every object that its process counts as not written."""

    def __init__(
        self, inner: ChunkStorage, effects: Effects, sent: Callable[[str, bytes], None]
    ) -> None:
        super().__init__(inner, effects)
        self._sent = sent

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        watched = _Watched(source=source)
        try:
            return super().create_with_content(name, watched, attributes=attributes)
        except (ProcessCrashError, RetriableError):
            if not watched.is_read_partly:
                with suppress(TieredStorageError):  # the attempt is over, and sends nothing
                    self._sent(name, b"".join(source.chunks()))
            raise
