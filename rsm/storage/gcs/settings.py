"""Represents the settings of a GCS bucket. Does not import the SDK."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PART_UNIT_BYTES = 256 << 10  # The length of each part is a multiple of this unit.


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsSettings:
    """Represents a bucket. `credentials_file` is a service account's key.

    If the file is None, the SDK finds credentials. With `is_anonymous`, for emulators, requests
    have no credentials. Content above 8 MiB or of unknown length is uploaded in parts of
    `part_bytes`, a multiple of PART_UNIT_BYTES. `attempt_timeout_ms` limits connecting, each wait
    for data, and the whole read of a range. A failed request is repeated until `retry_timeout_ms`
    have passed; 0 disables repetitions.
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
