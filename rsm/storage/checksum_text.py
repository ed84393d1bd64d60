"""How S3 and Google Cloud Storage spell a CRC32C. Pure."""

from __future__ import annotations

import base64


def spell_crc32c(checksum: int) -> str:
    """As they spell it: four bytes, the highest first, in base64."""
    return base64.b64encode(checksum.to_bytes(4, "big")).decode()


def parse_crc32c(text: str) -> int | None:
    """The checksum, or None for what is none of a whole object."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return int.from_bytes(decoded, "big") if len(decoded) == 4 else None
