"""Defines the settings of a gateway's cache of stored segments."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from rsm.config.section import Section
from rsm.config.values import Count, Directory, SizeBytes

CACHE_PATH_KEY = "rsm.config.fetch.chunk.cache.path"


class FetchCacheKeys(Section):
    """A gateway's cache."""

    chunk_bytes: Count = Field(
        default=4_194_304,
        validation_alias="rsm.config.chunk.size",
        description="Size of the chunks in which the gateway reads and caches segments. Higher: "
        "fewer requests to the store, and more bytes read for a small fetch.",
    )
    chunk_cache_bytes: Count = Field(
        default=268_435_456,
        validation_alias="rsm.config.fetch.chunk.cache.size",
        description="Maximum memory for data from the store, shared by all clients. The gateway "
        "uses up to a quarter more for free buffers. Lower: more reads from the store.",
    )
    chunk_cache_path: Directory | None = Field(
        default=None,
        validation_alias=CACHE_PATH_KEY,
        description="Directory of a disk cache for data that the gateway read from the store. The "
        "gateway creates it if it is missing; nothing else may use it. If this key is not set, "
        "there is no disk cache.",
    )
    chunk_cache_disk_bytes: SizeBytes = Field(
        default=10_737_418_240,
        validation_alias="rsm.config.fetch.chunk.cache.disk.size",
        description="Maximum size of the data in `rsm.config.fetch.chunk.cache.path`. Lower: more "
        "reads from the store.",
    )

    @field_validator("chunk_cache_bytes")
    @classmethod
    def _check_cache(cls, value: int, info: ValidationInfo) -> int:
        """Refuse a cache that is too small for two chunks: a batch may span two of them."""
        chunk_bytes = info.data.get("chunk_bytes")
        if chunk_bytes is not None and value < 2 * chunk_bytes:
            raise ValueError(f"at least twice rsm.config.chunk.size={chunk_bytes}")
        return value
