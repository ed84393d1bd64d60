"""What tells a bucket and how it is used. Knows nothing of the SDK."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PART_UNIT_BYTES = 256 << 10  # an upload takes parts of multiples of this only


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsSettings:
    """One bucket; `credentials_file` is a service account's key, else they are looked for.

    `anonymous` sends none: for stand-ins of the store. `part_bytes`: larger objects go up in parts
    of that length, a multiple of PART_UNIT_BYTES. `attempt_timeout_ms` bounds each step of a
    request, and the whole body of an answer; a request that failed is sent again until
    `retry_timeout_ms` have passed, 0 for never.
    """

    bucket: str
    endpoint_url: str | None = None
    credentials_file: Path | None = None
    anonymous: bool = False
    part_bytes: int = 16 << 20
    attempt_timeout_ms: int = 30_000
    retry_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        assert self.part_bytes > 0
        assert self.part_bytes % PART_UNIT_BYTES == 0
