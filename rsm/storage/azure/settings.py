"""What tells a container and how it is used. Knows nothing of the SDK."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_PART_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureSettings:
    """One container; the connection string names the account and holds a key or a signature.

    The rest is as in rsm.storage.s3.settings.S3Settings.
    """

    connection_string: str = field(repr=False)
    container: str
    part_bytes: int = 16 << 20
    upload_memory_bytes: int = 192 << 20
    attempt_timeout_ms: int = 30_000
    max_attempts: int = 3
