"""Uploads whose request is in flight when their process dies or gives them up.

They may complete after all processes count the attempt as dead, but not after its deadline: until
then an attempt may write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.local_segment import ContentSource
from rsm.storage.chunk_storage import ChunkStorage
from tests.twins.effects import Effects, ProcessCrashError
from tests.twins.seams import SeamChunkStorage


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An object that may still be written until `deadline_ms` by the broker's time."""

    name: str
    content: bytes
    deadline_ms: int


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
        try:
            return super().create_with_content(name, source, attributes=attributes)
        except (ProcessCrashError, RetriableError):
            with suppress(TieredStorageError):  # the attempt is over, and sends nothing
                self._sent(name, b"".join(source.chunks()))
            raise
