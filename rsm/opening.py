"""Opens a store and the segments in it, for `rlm` and Spark alike; loads plug-ins."""

from __future__ import annotations

from collections.abc import Iterator

from rsm.layout.block_v1.layout import NAME as BLOCK_V1
from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.block_stream import DEFAULT_STREAM_BLOCK_BYTES
from rsm.layout.block_v2.layout import NAME as BLOCK_V2
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.chunked import NAME as CHUNKED
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import NAME as RAW
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import ObjectOrigin, SegmentLayout
from rsm.manager import SegmentStorageManager
from rsm.plugins.calls import PluginCalls, PluginFailed, ignore_failure
from rsm.plugins.layout import PluginLayout
from rsm.plugins.loading import start_plugin
from rsm.plugins.manager import PluginStorageManager
from rsm.plugins.plugin import Plugin
from rsm.plugins.storage import PluginChunkStorage
from rsm.read.store_scan import StoreScan
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.spi import RemoteStorageManager
from rsm.storage.bindings import open_storage
from rsm.storage.chunk_storage import ChunkStorage, RequestObserver, ignore_request
from rsm.store_settings import SegmentSettings, Store
from rsm.transfer import ReadBack


def open_store(
    store: Store,
    failed: PluginFailed = ignore_failure,
    observe: RequestObserver = ignore_request,
) -> ChunkStorage:
    """Open a store. If it is a plug-in, `failed` counts its errors.

    Raises the errors of `open_storage`, and InvalidConfigError for a plug-in that cannot be
    started. If the store is not a plug-in, `observe` is called for its requests.
    """
    if not isinstance(store, Plugin):
        return open_storage(store, observe)
    inner = start_plugin(store, ChunkStorage)  # type: ignore[type-abstract]  # loading checks
    try:
        return PluginChunkStorage(inner, PluginCalls(store, failed))
    except RetriableError as error:
        raise _cannot_start(store, error) from error


def open_segments(
    settings: SegmentSettings,
    storage: ChunkStorage,
    origin: ObjectOrigin | None = None,
    failed: PluginFailed = ignore_failure,
) -> RemoteStorageManager:
    """Open the segments in `storage`; `close` of the result also closes `storage`.

    The built-in layouts record `origin` in new objects. On an error, closes `storage`. Raises
    InvalidConfigError for a plug-in that cannot be started, or has the name of another layout.
    """
    read_back = ReadBack() if settings.should_read_back else None
    try:
        if settings.manager is not None:
            return _PluginSegments(settings.manager, storage, failed, read_back)
        built_in = _built_in_layouts(settings, origin)
        layouts = list(_layouts(settings, dict(built_in), failed))
        return SegmentStorageManager(
            storage=storage,
            keys=ObjectKeys(prefix=settings.key_prefix),
            layouts=layouts,
            class_names={
                str(each.class_name): layout.name
                for each, layout in zip(settings.layouts, layouts, strict=False)
                if isinstance(each, Plugin)
            },
            stream_layout=built_in[BLOCK_V2],
            read_back=read_back,
            decoded_cache_bytes=settings.index_cache_bytes,
        )
    except BaseException:
        storage.close()
        raise


def open_store_scan(
    settings: SegmentSettings, storage: ChunkStorage, failed: PluginFailed = ignore_failure
) -> StoreScan:
    """Open the search for segments in a store. The caller closes `storage`.

    Raises InvalidConfigError for a layout plug-in that cannot be started. Raises it also if the
    storage manager is a plug-in, because only the plug-in knows where segments are.
    """
    if settings.manager is not None:
        raise InvalidConfigError(
            "cannot search the store for segments: the storage manager is a plug-in",
            key=settings.manager.key,
            found=settings.manager.class_name,
            advice="Use the tools of the plug-in",
        )
    layouts = _layouts(settings, _built_in_layouts(settings, None), failed)
    return StoreScan(storage, ObjectKeys(prefix=settings.key_prefix), list(layouts))


def open_layout(plugin: Plugin, failed: PluginFailed = ignore_failure) -> SegmentLayout:
    """Start the plug-in of a layout. Raises InvalidConfigError if it cannot be started."""
    inner = start_plugin(plugin, SegmentLayout)  # type: ignore[type-abstract]  # loading checks
    try:
        return PluginLayout(inner, PluginCalls(plugin, failed))
    except RetriableError as error:
        raise _cannot_start(plugin, error) from error


class _PluginSegments(PluginStorageManager):
    """A plug-in's storage manager. `close` also closes the store of `rlm`'s other objects."""

    def __init__(
        self,
        plugin: Plugin,
        storage: ChunkStorage,
        failed: PluginFailed,
        read_back: ReadBack | None,
    ) -> None:
        inner = start_plugin(plugin, RemoteStorageManager)  # type: ignore[type-abstract]  # loading checks
        super().__init__(inner, PluginCalls(plugin, failed), read_back)
        self._storage = storage

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._storage.close()


def _built_in_layouts(
    settings: SegmentSettings, origin: ObjectOrigin | None
) -> dict[str, SegmentLayout]:
    """Return the built-in layouts by name. `block_v2` buffers blocks, so its blocks are small."""
    stream_block_bytes = min(settings.block_bytes, DEFAULT_STREAM_BLOCK_BYTES)
    return {
        RAW: RawLayout(origin=origin),
        BLOCK_V1: BlockV1Layout(block_bytes=settings.block_bytes, origin=origin),
        BLOCK_V2: BlockV2Layout(block_bytes=stream_block_bytes, origin=origin),
        CHUNKED: ChunkedLayout(max_chunk_bytes=settings.chunk_bytes, origin=origin),
    }


def _layouts(
    settings: SegmentSettings, built_in: dict[str, SegmentLayout], failed: PluginFailed
) -> Iterator[SegmentLayout]:
    """Yield the configured layouts, and then the built-in layouts that are not configured."""
    names = set(built_in)
    for each in settings.layouts:
        if not isinstance(each, Plugin):
            yield built_in.pop(each)
            continue
        layout = open_layout(each, failed)
        if layout.name in names:
            raise InvalidConfigError(
                "two layouts have the same name",
                key=each.key,
                plugin=each.class_name,
                name=layout.name,
                advice="Rename the layout of the plug-in, or remove the plug-in from the list",
            )
        names.add(layout.name)
        yield layout
    yield from built_in.values()


def _cannot_start(plugin: Plugin, error: RetriableError) -> InvalidConfigError:
    context = {name: value for name, value in error.context.items() if name != "plugin"}
    return InvalidConfigError(
        "the plug-in cannot be started", key=plugin.key, plugin=plugin.class_name, **context
    )
