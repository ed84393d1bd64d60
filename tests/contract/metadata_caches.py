"""Every OrderedStore, for the suites of the store and of the cache over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rlmm.cache.memory import MemoryStore
from rlmm.cache.ordered_store import OrderedStore
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.cache.rocksdb_options import RocksDbSettings

SMALL = RocksDbSettings(block_cache_bytes=1 << 20, write_buffer_bytes=1 << 20)

STORES: dict[str, Callable[[Path], OrderedStore]] = {
    "memory": lambda _: MemoryStore(),
    "rocksdb": lambda directory: RocksDbStore(directory / "cache", SMALL),
}
