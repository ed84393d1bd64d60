"""A store in memory that keeps what failed creations have sent, as S3 keeps parts of uploads.

While the first bytes of a new object are those of an unfinished upload, they are not sent. At the
first different byte, the store completes the upload with the equal bytes, and that object becomes
the first part of the new one; the rest is sent. An upload without an equal byte is aborted before
the new one begins.

So the new object begins with the old bytes, as on S3. For logs stored as they are (layout `raw`),
all checksums count as equal: only the caller's limit protects such an object from other bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile

from rsm.layout.raw import LOG_SUFFIX
from rsm.segment.errors import AlreadyExistsError, RetriableError
from rsm.segment.local_segment import (
    BytesSource,
    ContentReuse,
    ContentSource,
    acknowledge,
    reuse_of,
)
from rsm.storage.chunk_storage import Capabilities
from rsm.storage.memory import MemoryChunkStorage


class UnfinishedStorage(MemoryChunkStorage):
    """Uses equal first bytes again. `unfinished` has the bytes of each upload by name.

    `asked` has, for each creation that may use uploads again, their names. `at_end` is called
    before such a creation ends, and may fail it. `copied` gets the name and the length of what was
    used again.
    """

    def __init__(self, *, wall_ms: Callable[[], int]) -> None:
        super().__init__(wall_ms=wall_ms)
        self.unfinished: dict[str, bytearray] = {}
        self.asked: list[tuple[str, ...]] = []
        self.at_end: Callable[[], None] = lambda: None
        self.copied: Callable[[str, int], None] = lambda *_: None

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
        earlier = self._longest(reuse)
        sent = self._begin(name, b"") if earlier is None else None
        for view in source.chunks():
            if sent is not None:
                sent.extend(view)
            elif earlier is not None and not earlier.take(view):
                sent = self._begin(name, self._copied(earlier))
            acknowledge(source, len(view))
        if sent is None:
            assert earlier is not None
            sent = self._begin(name, self._copied(earlier))
        self.at_end()
        self._end(name, sent)
        content = BytesSource(content=bytes(sent))
        return super().create_with_content(name, content, attributes=attributes)

    def discard_uploads(self, name: str) -> None:
        self.unfinished.pop(name, None)

    def _begin(self, name: str, sent: bytes) -> bytearray:
        upload = self.unfinished[name] = bytearray(sent)
        return upload

    def _longest(self, reuse: ContentReuse) -> _Earlier | None:
        """Return the upload with the most bytes; abort the other, unused ones."""
        found = {name: self.unfinished.get(name, bytearray()) for name in reuse.names}
        longest = max(found, key=lambda name: len(found[name]), default=None)
        for name, sent in found.items():
            if name != longest or not sent:
                self.discard_uploads(name)
                reuse.unused(name)
        if longest is None or not found[longest]:
            return None
        upload = found[longest]
        return _Earlier(name=longest, upload=upload, listed=bytes(upload), reuse=reuse)

    def _copied(self, earlier: _Earlier) -> bytes:
        """End the earlier upload; return its equal bytes and the content's further bytes."""
        same = earlier.listed[: earlier.same_bytes]
        try:
            if same:
                self._end(earlier.name, earlier.upload)
                super().create_with_content(earlier.name, BytesSource(content=same))
                earlier.reuse.reused(len(same))
                self.copied(earlier.name, len(same))
            else:
                self.discard_uploads(earlier.name)
        except (AlreadyExistsError, RetriableError) as error:
            self.discard_uploads(earlier.name)
            raise RetriableError("an upload cannot be used again", name=earlier.name) from error
        finally:
            earlier.reuse.unused(earlier.name)
        return same + bytes(earlier.taken[len(same) :])

    def _end(self, name: str, upload: bytearray) -> None:
        """End an upload, unless somebody has ended it."""
        if self.unfinished.get(name) is not upload:
            raise RetriableError("the upload has ended", name=name)
        del self.unfinished[name]


@dataclass(slots=True, kw_only=True)
class _Earlier:
    """An unfinished upload with its bytes at the listing, and the new content so far."""

    name: str
    upload: bytearray
    listed: bytes
    reuse: ContentReuse
    taken: bytearray = field(default_factory=bytearray)
    same_bytes: int = 0

    def take(self, view: memoryview) -> bool:
        """Take the next bytes of the content; return whether the upload has these and more."""
        begin = len(self.taken)
        new, listed = bytes(view), self.listed[begin : begin + len(view)]
        if self.name.endswith(f".{LOG_SUFFIX}"):
            equal_bytes = len(listed)
        else:
            pairs = zip(new, listed, strict=False)
            equal_bytes = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        while equal_bytes and not self.reuse.allows(begin + equal_bytes):
            equal_bytes -= 1
        self.same_bytes += equal_bytes
        self.taken += new
        return len(self.taken) == self.same_bytes < len(self.listed)
