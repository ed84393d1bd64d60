"""Where an audit has its metadata from: the topic, or a process's cache and what came after it.

Either way it is read to the topic's end, into RocksDB in a directory that is removed in the end: in
memory are RocksDB's caches, however many segments there are.
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
    """The metadata as of the topic's end of now.

    `cache`: the directory of a cache that is copied first, in use or not; the topic is read from
    the positions on that it is consistent with, or whole if that is not its topic any more.
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
