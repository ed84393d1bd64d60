"""Parses `rsm.config.*` keys into store settings, without the keys of uploads. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from rsm.segment.errors import InvalidConfigError
from rsm.storage.azure.settings import AzureSettings
from rsm.storage.bindings import FilesystemSettings, StoreSettings
from rsm.storage.gcs.settings import GcsSettings
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.s3.settings import S3Settings

_BACKEND = "rsm.config.storage.backend"
_ROOT = "rsm.config.storage.filesystem.root"
_AZURE = "rsm.config.storage.azure."
_GCS = "rsm.config.storage.gcs."
_HDFS = "rsm.config.storage.hdfs."
_S3 = "rsm.config.storage.s3."

KEYS = frozenset(
    {
        _BACKEND,
        _ROOT,
        *(_AZURE + name for name in ("connection.string", "container.name", "timeout.ms")),
        *(_GCS + name for name in ("bucket.name", "endpoint.url", "timeout.ms")),
        *(_GCS + name for name in ("credentials.path", "credentials.default", "retry.timeout.ms")),
        *(_HDFS + name for name in ("namenode.urls", "root", "user", "timeout.ms")),
        *(_S3 + name for name in ("bucket.name", "endpoint.url", "region", "max.attempts")),
        *(_S3 + name for name in ("path.style.access.enabled", "api.call.attempt.timeout")),
    }
)
"""All keys that this module reads, of any store."""

# The values that `rlm run` accepts, in any case.
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


def store_settings(values: Mapping[str, str]) -> StoreSettings:
    """Return the settings. Raises InvalidConfigError for an unknown store and a missing option."""
    backend = values.get(_BACKEND, "filesystem")
    match backend:
        case "filesystem":
            return FilesystemSettings(root=Path(_required(values, _ROOT)))
        case "azure":
            return _azure(values)
        case "gcs":
            return _gcs(values)
        case "hdfs":
            return _hdfs(values)
        case "s3":
            return _s3(values)
        case _:
            raise InvalidConfigError(
                "a store that is not known here",
                option=_BACKEND,
                found=backend,
                expected="filesystem, azure, gcs, hdfs or s3",
            )


def store_url(settings: StoreSettings, prefix: str) -> str:
    """Return the address of the objects under `prefix`, without user, password, key or signature.

    For people. The address includes the store's own endpoint if it has one.
    """
    below = f"/{prefix}" if prefix else ""
    match settings:
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
    """Remove user, password, query and fragment from a URL. Returns "" for an invalid URL."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return ""
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{port}{parts.path}" if parts.scheme and host else ""


def _azure_account(settings: AzureSettings) -> str:
    """Return the account of a connection string, or the host of its endpoint."""
    parts = dict(part.strip().partition("=")[::2] for part in settings.connection_string.split(";"))
    endpoint = without_secrets(parts.get("BlobEndpoint", ""))
    return parts.get("AccountName") or endpoint.partition("://")[2].rstrip("/")


def _at(endpoint_url: str | None) -> str:
    url = without_secrets(endpoint_url or "")
    return f" at {url}" if url else ""


def _azure(values: Mapping[str, str]) -> AzureSettings:
    return AzureSettings(
        connection_string=_required(values, _AZURE + "connection.string"),
        container=_required(values, _AZURE + "container.name"),
        attempt_timeout_ms=_number(values, _AZURE + "timeout.ms", 30_000),
    )


def _gcs(values: Mapping[str, str]) -> GcsSettings:
    key_path = values.get(_GCS + "credentials.path")
    return GcsSettings(
        bucket=_required(values, _GCS + "bucket.name"),
        endpoint_url=values.get(_GCS + "endpoint.url"),
        credentials_file=Path(key_path) if key_path else None,
        anonymous=not key_path and not _truth(values, _GCS + "credentials.default", default=True),
        attempt_timeout_ms=_number(values, _GCS + "timeout.ms", 30_000),
        retry_timeout_ms=_number(values, _GCS + "retry.timeout.ms", 60_000),
    )


def _hdfs(values: Mapping[str, str]) -> HdfsSettings:
    urls = _required(values, _HDFS + "namenode.urls").split(",")
    return HdfsSettings(
        namenode_urls=tuple(url.strip().rstrip("/") for url in urls if url.strip()),
        root=_required(values, _HDFS + "root"),
        user=values.get(_HDFS + "user") or "rlm",
        timeout_ms=_number(values, _HDFS + "timeout.ms", 30_000),
    )


def _s3(values: Mapping[str, str]) -> S3Settings:
    return S3Settings(
        bucket=_required(values, _S3 + "bucket.name"),
        endpoint_url=values.get(_S3 + "endpoint.url"),
        region=values.get(_S3 + "region"),
        path_style=_truth(values, _S3 + "path.style.access.enabled", default=False),
        attempt_timeout_ms=_number(values, _S3 + "api.call.attempt.timeout", 30_000),
        max_attempts=_number(values, _S3 + "max.attempts", 3),
    )


def _required(values: Mapping[str, str], key: str) -> str:
    value = values.get(key)
    if not value:
        raise InvalidConfigError("an option is missing", option=key)
    return value


def _truth(values: Mapping[str, str], key: str, *, default: bool) -> bool:
    text = values.get(key, str(default)).lower()
    if text not in _TRUE | _FALSE:
        raise InvalidConfigError(
            "not a value of this option", option=key, found=text, expected="true or false"
        )
    return text in _TRUE


def _number(values: Mapping[str, str], key: str, default: int) -> int:
    text = values.get(key)
    if text is None:
        return default
    if not text.isdecimal() or not int(text):
        raise InvalidConfigError(
            "not a value of this option", option=key, found=text, expected="a number above 0"
        )
    return int(text)
