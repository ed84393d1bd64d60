"""Opens the metadata of an audit: the topic, or a process's cache and the newer events.

Both are read to the topic's end, into RocksDB in a temporary directory. Memory: RocksDB's caches,
whatever the number of segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rlmm.cache.rocksdb import RocksDbStore
from rlmm.cache.rocksdb_copy import copy_cache
from spark_tools.connection import ClusterConnection
from spark_tools.snapshot import MetadataSnapshot, open_snapshot


@contextmanager
def open_metadata(
    connection: ClusterConnection, *, timeout_ms: int, cache: Path | None = None
) -> Iterator[MetadataSnapshot]:
    """Open the metadata as of the topic's current end.

    `cache` is the directory of a cache to copy first, which may be in use. The topic is then read
    from the cache's positions, or completely if the cache is of another topic. Raises
    InvalidConfigError, RetriableError.
    """
    with TemporaryDirectory(prefix="rlm-audit-") as directory:
        store = RocksDbStore(Path(directory) / "cache")
        try:
            if cache is not None:
                copy_cache(cache, store, Path(directory) / "secondary")
            with open_snapshot(connection, timeout_ms=timeout_ms, store=store) as snapshot:
                yield snapshot
        finally:
            store.close()
