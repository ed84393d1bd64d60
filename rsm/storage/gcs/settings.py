"""The settings of a GCS bucket, without its SDK."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PART_UNIT_BYTES = 256 << 10  # the parts of an upload are multiples of it


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsSettings:
    """One bucket. Without `credentials_file`, a service account's key, the SDK finds credentials.

    `is_anonymous` sends no credentials, for emulators. An object above `part_bytes` is uploaded in
    parts of this size, a multiple of PART_UNIT_BYTES. `attempt_timeout_ms` limits connecting, each
    wait for data, and the whole body of a response. A failed request is repeated until
    `retry_timeout_ms` have passed; 0 disables that.
    """

    bucket: str
    endpoint_url: str | None = None
    credentials_file: Path | None = None
    is_anonymous: bool = False
    part_bytes: int = 16 << 20
    attempt_timeout_ms: int = 30_000
    retry_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        assert self.part_bytes > 0
        assert self.part_bytes % PART_UNIT_BYTES == 0
