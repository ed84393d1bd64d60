"""What tells a bucket and how it is used. Knows nothing of the SDK."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MIN_PART_BYTES = 5 << 20  # S3 takes no smaller part but the last one
MAX_PART_BYTES = 2 << 30  # what one call of the operating system sends


class ServerSideEncryption(Enum):
    """Who holds the keys that the store encrypts objects with: S3 or its key management."""

    SSE_S3 = "AES256"
    SSE_KMS = "aws:kms"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """One bucket. Credentials are those of the SDK's default chain.

    `part_bytes`: larger objects go up in parts of that length; `upload_memory_bytes` bounds the
    parts in memory of all uploads together. `attempt_timeout_ms` bounds each step of a request,
    and the whole body of an answer. `max_attempts` counts the first one.
    """

    bucket: str
    endpoint_url: str | None = None
    region: str | None = None
    path_style: bool = False
    storage_class: str | None = None
    encryption: ServerSideEncryption | None = None
    kms_key_id: str | None = None
    part_bytes: int = 16 << 20
    upload_memory_bytes: int = 192 << 20
    attempt_timeout_ms: int = 30_000
    max_attempts: int = 3
