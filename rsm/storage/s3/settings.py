"""Represents the settings of an S3 bucket. Does not import the SDK."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MIN_PART_BYTES = 5 << 20  # S3 accepts no smaller part except the last
MAX_PART_BYTES = 2 << 30  # the limit of one send call of the operating system


class ServerSideEncryption(Enum):
    """Represents the keeper of the keys for server-side encryption: S3 or AWS KMS."""

    SSE_S3 = "AES256"
    SSE_KMS = "aws:kms"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """Represents a bucket. Credentials come from the SDK's default chain.

    Content above `part_bytes` or of unknown length is uploaded in parts of that length, unless the
    source sets its own parts. `upload_memory_bytes` limits the memory for the parts of all uploads,
    and `stream_memory_bytes` the share of streams; the minimum of each is one part.
    `attempt_timeout_ms` limits connecting, each wait for data, and the whole read of a range.
    `max_attempts` includes the first attempt.
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
    stream_memory_bytes: int = 96 << 20
    attempt_timeout_ms: int = 30_000
    max_attempts: int = 3
