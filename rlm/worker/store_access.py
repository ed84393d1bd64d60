"""Opens a process's access to the store, from its configuration.

Invalid settings raise InvalidConfigError at once.
"""

from __future__ import annotations

from rlm.topics.originals_mirror import StoredOriginals
from rsm.config.storage import StorageConfig
from rsm.layout.originals import OriginalsKeys
from rsm.layout.segment_layout import ObjectOrigin
from rsm.opening import open_segments, open_store
from rsm.plugins.calls import PluginFailed, ignore_failure
from rsm.spi import RemoteStorageManager
from rsm.storage.chunk_storage import ChunkStorage, RequestObserver, ignore_request
from rsm.storage.wrappers.rehearsal import rehearsed
from rsm.system_clock import SystemClock


def open_chunk_storage(
    config: StorageConfig,
    plugin_failed: PluginFailed = ignore_failure,
    observe: RequestObserver = ignore_request,
    *,
    stream_buffer_bytes: int | None = None,
) -> ChunkStorage:
    """Open the store; if a rehearsal is configured, add its delays, limits and faults.

    `stream_buffer_bytes` limits the memory of streams (see `StorageConfig.store`).
    """
    store = open_store(config.store(stream_buffer_bytes), plugin_failed, observe)
    return rehearsed(store, config.rehearsal(), SystemClock())


def open_stored_originals(config: StorageConfig, storage: ChunkStorage) -> StoredOriginals:
    """Open the originals of topics, which `storage` keeps next to the segments."""
    return StoredOriginals(storage, OriginalsKeys(prefix=config.key_prefix))


def open_storage_manager(
    config: StorageConfig,
    storage: ChunkStorage,
    origin: ObjectOrigin | None = None,
    plugin_failed: PluginFailed = ignore_failure,
) -> RemoteStorageManager:
    """Open the storage manager of the segments in `storage`; new segments record `origin`."""
    return open_segments(config.segments(), storage, origin, plugin_failed)
