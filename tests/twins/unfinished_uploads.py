"""A store in memory that keeps what failed creations have sent, as S3 keeps parts of uploads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from rsm.segment.local_segment import ContentReuse, ContentSource, WrappedSource, reuse_of
from rsm.storage.chunk_storage import Capabilities
from rsm.storage.memory import MemoryChunkStorage


class UnfinishedStorage(MemoryChunkStorage):
    """Uses again the first bytes that are equal. `unfinished` has the bytes of each upload by name.

    `asked` are the names of each creation that may use others again. `at_end` is called before such
    a creation ends, and may fail it.
    """

    def __init__(self, *, wall_ms: Callable[[], int]) -> None:
        super().__init__(wall_ms=wall_ms)
        self.unfinished: dict[str, bytearray] = {}
        self.asked: list[tuple[str, ...]] = []
        self.at_end: Callable[[], None] = lambda: None

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, has_reusable_uploads=True)

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        reuse = reuse_of(source)
        if reuse is None:
            return super().create_with_content(name, source, attributes=attributes)
        self.asked.append(reuse.names)
        sent = bytearray()
        kept = _Kept(source=source, sent=sent, at_end=self.at_end)
        self.unfinished[name] = sent
        checksum = super().create_with_content(name, kept, attributes=attributes)
        del self.unfinished[name]
        self._report(reuse, bytes(sent))
        return checksum

    def discard_uploads(self, name: str) -> None:
        self.unfinished.pop(name, None)

    def _report(self, reuse: ContentReuse, content: bytes) -> None:
        for name in reuse.names:
            pairs = zip(self.unfinished.get(name, b""), content, strict=False)
            same_bytes = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            reuse.reused(max(filter(reuse.allows, range(same_bytes + 1))))
            reuse.unused(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept(WrappedSource):
    """Content whose bytes stay after an error."""

    sent: bytearray
    at_end: Callable[[], None]

    def chunks(self) -> Iterator[memoryview]:
        for view in self.source.chunks():
            self.sent.extend(view)
            yield view
        self.at_end()
