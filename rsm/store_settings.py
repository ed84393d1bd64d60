"""Represents the settings of a store and of its segments as plain values (see rsm.opening).

The module is separate, so that a program can parse a configuration without importing a layout.
Spark sends these settings to its executors.
"""

from __future__ import annotations

from dataclasses import dataclass

from rsm.layout.blocks.block_format import DEFAULT_BLOCK_BYTES
from rsm.plugins.plugin import Plugin
from rsm.storage.settings import StoreSettings

DEFAULT_CHUNK_BYTES = 64 << 20

Store = StoreSettings | Plugin
"""The settings of a built-in store, or the plug-in that implements another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSettings:
    """Represents how segments are stored.

    `layouts` precede the other built-in layouts. By default, a new segment gets the first layout
    that can store it. If `manager` is set, only that plug-in copies, reads and deletes segments.
    """

    key_prefix: str = ""
    layouts: tuple[str | Plugin, ...] = ()
    block_bytes: int = DEFAULT_BLOCK_BYTES
    chunk_bytes: int = DEFAULT_CHUNK_BYTES
    index_cache_bytes: int = 64 << 20
    should_read_back: bool = False
    manager: Plugin | None = None
