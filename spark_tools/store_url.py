"""Builds a store's address for people to read. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from rsm.plugins.plugin import Plugin
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.gcs.settings import GcsSettings
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.s3.settings import S3Settings
from rsm.storage.settings import FilesystemSettings
from rsm.store_settings import Store


def store_url(settings: Store, prefix: str) -> str:
    """Return the address of the objects under `prefix`, without user, password, key or signature.

    Includes a configured endpoint of S3 or GCS, and the NameNodes of HDFS.
    """
    below = f"/{prefix}" if prefix else ""
    match settings:
        case Plugin():
            return f"{settings.class_name}{below}"
        case FilesystemSettings():
            return f"{settings.root.absolute().as_uri().rstrip('/')}{below}"
        case AzureSettings():
            return f"azure://{_azure_account(settings)}/{settings.container}{below}"
        case GcsSettings():
            return f"gs://{settings.bucket}{below}{_at(settings.endpoint_url)}"
        case HdfsSettings():
            hosts = ", ".join(filter(None, map(without_secrets, settings.namenode_urls)))
            return f"hdfs:{settings.root.rstrip('/')}{below} at {hosts}"
        case S3Settings():
            return f"s3://{settings.bucket}{below}{_at(settings.endpoint_url)}"


def without_secrets(url: str) -> str:
    """Remove user, password, query and fragment from a URL. Returns "" if the URL is invalid."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return ""
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{port}{parts.path}" if parts.scheme and host else ""


def _azure_account(settings: AzureSettings) -> str:
    """Return the account name in a connection string; if it has none, its endpoint's host."""
    parts = dict(part.strip().partition("=")[::2] for part in settings.connection_string.split(";"))
    endpoint = without_secrets(parts.get("BlobEndpoint", ""))
    return parts.get("AccountName") or endpoint.partition("://")[2].rstrip("/")


def _at(endpoint_url: str | None) -> str:
    url = without_secrets(endpoint_url or "")
    return f" at {url}" if url else ""
