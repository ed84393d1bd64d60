"""Names a store as Pulsar's offloaders do, in the driver metadata of offloaded data. Pure.

| store | properties |
|---|---|
| S3 | `bucket`, `region`, `serviceEndpoint` |
| GCS, Azure | `bucket`, `serviceEndpoint` |
| directory | `storageBasePath` |
| HDFS | `storageBasePath`, `serviceEndpoint` (the addresses of the NameNodes) |

A setting that is not configured has no property. A property never contains a key, a password or a
signature.

Source: TieredStorageConfiguration and FileSystemManagedLedgerOffloader of Pulsar (PIP-17, PIP-76).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from rsm.storage.azure.settings import AzureSettings
from rsm.storage.gcs.settings import GcsSettings
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.s3.settings import S3Settings
from rsm.storage.settings import FilesystemSettings, StoreSettings

BUCKET = "bucket"
REGION = "region"
SERVICE_ENDPOINT = "serviceEndpoint"
STORAGE_BASE_PATH = "storageBasePath"

_AZURE_SUFFIX = "core.windows.net"


def driver_metadata(store: StoreSettings) -> Mapping[str, str]:
    """Return the properties that locate a store, under Pulsar's names."""
    return {name: value for name, value in _properties(store) if value}


def _properties(store: StoreSettings) -> Iterator[tuple[str, str | None]]:
    match store:
        case S3Settings():
            yield BUCKET, store.bucket
            yield REGION, store.region
            yield SERVICE_ENDPOINT, _public(store.endpoint_url)
        case GcsSettings():
            yield BUCKET, store.bucket
            yield SERVICE_ENDPOINT, _public(store.endpoint_url)
        case AzureSettings():
            yield BUCKET, store.container
            yield SERVICE_ENDPOINT, _public(_azure_endpoint(store.connection_string))
        case HdfsSettings():
            yield STORAGE_BASE_PATH, store.root
            yield SERVICE_ENDPOINT, ",".join(_public(url) or "" for url in store.namenode_urls)
        case FilesystemSettings():
            yield STORAGE_BASE_PATH, str(store.root)


def _azure_endpoint(connection_string: str) -> str | None:
    """Return the account's address, as the SDK finds it.

    Returns None if the text names neither a blob endpoint nor an account.
    """
    pairs = (part.partition("=") for part in connection_string.split(";"))
    values = {name.strip().lower(): value.strip() for name, _, value in pairs}
    account = values.get("accountname")
    if values.get("blobendpoint") or not account:
        return values.get("blobendpoint")
    protocol = values.get("defaultendpointsprotocol", "https")
    return f"{protocol}://{account}.blob.{values.get('endpointsuffix', _AZURE_SUFFIX)}"


def _public(url: str | None) -> str | None:
    """Return a URL without its user, password, query or fragment. A query may have a signature."""
    if url is None:
        return None
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()
