"""Opens the store that a configuration names. Imports only the SDK of that store's binding."""

from __future__ import annotations

from rsm.segment.errors import InvalidConfigError
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.chunk_storage import ChunkStorage, RequestObserver, ignore_request
from rsm.storage.gcs.settings import GcsSettings
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.s3.settings import S3Settings
from rsm.storage.settings import FilesystemSettings, StoreSettings


def open_storage(
    settings: StoreSettings, observe: RequestObserver = ignore_request
) -> ChunkStorage:
    """Open the store that a configuration names; a directory store never calls `observe`.

    Raises InvalidConfigError for settings that the binding can refuse at once: for example, the
    root is missing, or the SDK is not installed.
    """
    match settings:
        case FilesystemSettings():
            return _open_filesystem(settings)
        case AzureSettings():
            return _open_azure(settings, observe)
        case GcsSettings():
            return _open_gcs(settings, observe)
        case HdfsSettings():
            return _open_hdfs(settings, observe)
        case S3Settings():
            return _open_s3(settings, observe)


# Imports are lazy: only the chosen binding's dependencies are needed.


def _open_filesystem(settings: FilesystemSettings) -> ChunkStorage:
    from rsm.storage.filesystem.storage import FilesystemChunkStorage  # noqa: PLC0415

    return FilesystemChunkStorage(settings.root, access=settings.access)


def _open_azure(settings: AzureSettings, observe: RequestObserver) -> ChunkStorage:
    try:
        from rsm.storage.azure.storage import AzureChunkStorage  # noqa: PLC0415
    except ImportError as error:
        raise _not_installed("azure") from error
    return AzureChunkStorage(settings, observe=observe)


def _open_gcs(settings: GcsSettings, observe: RequestObserver) -> ChunkStorage:
    try:
        from rsm.storage.gcs.storage import GcsChunkStorage  # noqa: PLC0415
    except ImportError as error:
        raise _not_installed("gcs") from error
    return GcsChunkStorage(settings, observe=observe)


def _open_hdfs(settings: HdfsSettings, observe: RequestObserver) -> ChunkStorage:
    from rsm.storage.hdfs.storage import HdfsChunkStorage  # noqa: PLC0415

    return HdfsChunkStorage(settings, observe=observe)


def _open_s3(settings: S3Settings, observe: RequestObserver) -> ChunkStorage:
    try:
        from rsm.storage.s3.bucket import S3Bucket  # noqa: PLC0415
        from rsm.storage.s3.storage import S3ChunkStorage  # noqa: PLC0415
    except ImportError as error:
        raise _not_installed("s3") from error
    return S3ChunkStorage(S3Bucket(settings, observe=observe))


def _not_installed(extra: str) -> InvalidConfigError:
    return InvalidConfigError(
        "cannot open the store: its client is not installed",
        advice=f"Install it with `pip install 'kafka-rlm[{extra}]'`",
    )
