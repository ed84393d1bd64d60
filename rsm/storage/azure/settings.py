"""Represents the settings of an Azure container. Does not import the SDK."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_PART_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureSettings:
    """Represents a container. The connection string names the account and contains its credential.

    `attempt_timeout_ms` limits connecting, each wait for data, and each response to a read. The
    other settings are those of rsm.storage.s3.settings.S3Settings.
    """

    connection_string: str = field(repr=False)
    container: str
    part_bytes: int = 16 << 20
    upload_memory_bytes: int = 192 << 20
    stream_memory_bytes: int = 96 << 20
    attempt_timeout_ms: int = 30_000
    max_attempts: int = 3
