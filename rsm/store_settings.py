"""The settings of a store and of the segments in it, as plain values; rsm.opening opens them.

They have a module of their own, so that a program that only parses a configuration imports no
layout. Spark sends these settings to its executors.
"""

from __future__ import annotations

from dataclasses import dataclass

from rsm.layout.blocks.block_format import DEFAULT_BLOCK_BYTES
from rsm.plugins.plugin import Plugin
from rsm.storage.settings import StoreSettings

DEFAULT_CHUNK_BYTES = 64 << 20

Store = StoreSettings | Plugin
"""A built-in store, or the class of another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSettings:
    """How segments are stored.

    `layouts` come before the other built-in layouts; by default, new segments have the first one
    that can store them. With `manager`, only that plug-in copies, reads and deletes segments.
    """

    key_prefix: str = ""
    layouts: tuple[str | Plugin, ...] = ()
    block_bytes: int = DEFAULT_BLOCK_BYTES
    chunk_bytes: int = DEFAULT_CHUNK_BYTES
    index_cache_bytes: int = 64 << 20
    should_read_back: bool = False
    manager: Plugin | None = None
