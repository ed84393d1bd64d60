"""From `rsm.config.*` to the store that they name, as far as jobs need it: none uploads. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rsm.segment.errors import InvalidConfigError
from rsm.storage.bindings import FilesystemSettings, StoreSettings
from rsm.storage.s3.settings import S3Settings

_BACKEND = "rsm.config.storage.backend"
_ROOT = "rsm.config.storage.filesystem.root"
_S3 = "rsm.config.storage.s3."


def store_settings(values: Mapping[str, str]) -> StoreSettings:
    """InvalidConfigError for a store that is not known here, and for what is missing."""
    backend = values.get(_BACKEND, "filesystem")
    match backend:
        case "filesystem":
            return FilesystemSettings(root=Path(_required(values, _ROOT)))
        case "s3":
            return _s3(values)
        case _:
            raise InvalidConfigError(
                "a store that is not known here",
                option=_BACKEND,
                found=backend,
                expected="filesystem or s3",
            )


def _s3(values: Mapping[str, str]) -> S3Settings:
    return S3Settings(
        bucket=_required(values, _S3 + "bucket.name"),
        endpoint_url=values.get(_S3 + "endpoint.url"),
        region=values.get(_S3 + "region"),
        path_style=values.get(_S3 + "path.style.access.enabled", "false").lower() == "true",
        attempt_timeout_ms=_number(values, _S3 + "api.call.attempt.timeout", 30_000),
        max_attempts=_number(values, _S3 + "max.attempts", 3),
    )


def _required(values: Mapping[str, str], key: str) -> str:
    value = values.get(key)
    if not value:
        raise InvalidConfigError("an option is missing", option=key)
    return value


def _number(values: Mapping[str, str], key: str, default: int) -> int:
    text = values.get(key)
    if text is None:
        return default
    if not text.isdecimal() or not int(text):
        raise InvalidConfigError(
            "not a value of this option", option=key, found=text, expected="a number above 0"
        )
    return int(text)
