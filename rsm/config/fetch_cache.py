"""The keys of a gateway's cache of stored segments."""

from __future__ import annotations

from pydantic import Field

from rsm.config.section import Section
from rsm.config.values import Count, Directory, SizeBytes

CACHE_PATH_KEY = "rsm.config.fetch.chunk.cache.path"


class FetchCacheKeys(Section):
    """A gateway's cache."""

    chunk_bytes: Count = Field(
        default=4_194_304,
        validation_alias="rsm.config.chunk.size",
        description="In pieces of how many bytes segments are read and cached.",
    )
    chunk_cache_bytes: Count = Field(
        default=268_435_456,
        validation_alias="rsm.config.fetch.chunk.cache.size",
        description="Memory for what was read from the store, for all clients together; a quarter "
        "more is kept for what is read next.",
    )
    chunk_cache_path: Directory | None = Field(
        default=None,
        validation_alias=CACHE_PATH_KEY,
        description="Directory for what was read from the store and no longer fits into memory; "
        "made if it is not there, and the gateway's alone. By default nothing is kept on disk.",
    )
    chunk_cache_disk_bytes: SizeBytes = Field(
        default=10_737_418_240,
        validation_alias="rsm.config.fetch.chunk.cache.disk.size",
        description="How much is kept in that directory.",
    )
