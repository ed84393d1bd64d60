"""The settings of a store and of the segments in it, as plain values; rsm.opening opens them.

They are apart from the opening, so that a program that only parses a configuration imports no
layout. Spark sends them to its executors.
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
    """How segments are kept in a store.

    `layouts` come before the built-in ones; the first one writes. With `manager`, a plug-in alone
    copies, reads and deletes segments.
    """

    key_prefix: str = ""
    layouts: tuple[str | Plugin, ...] = ()
    block_bytes: int = DEFAULT_BLOCK_BYTES
    chunk_bytes: int = DEFAULT_CHUNK_BYTES
    index_cache_bytes: int = 64 << 20
    should_read_back: bool = False
    manager: Plugin | None = None
