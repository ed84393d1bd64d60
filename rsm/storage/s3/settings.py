"""The settings of an S3 bucket, without its SDK."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MIN_PART_BYTES = 5 << 20  # S3 accepts no smaller part except the last
MAX_PART_BYTES = 2 << 30  # the limit of one send call of the operating system


class ServerSideEncryption(Enum):
    """The owner of the keys for server-side encryption: S3 or its key management."""

    SSE_S3 = "AES256"
    SSE_KMS = "aws:kms"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """One bucket. Credentials are those of the SDK's default chain.

    Objects larger than `part_bytes` are uploaded in parts of that length. `upload_memory_bytes`
    limits the parts in memory of all uploads together, and `stream_memory_bytes` those of streams
    among them. `attempt_timeout_ms` limits connecting, each wait for data, and the whole body of a
    response. `max_attempts` includes the first attempt.
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
