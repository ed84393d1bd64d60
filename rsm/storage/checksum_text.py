"""Converts a CRC32C to and from its text form in S3 and Google Cloud Storage. Pure."""

from __future__ import annotations

import base64


def spell_crc32c(checksum: int) -> str:
    """Encode a checksum: four bytes, big-endian, in base64."""
    return base64.b64encode(checksum.to_bytes(4, "big")).decode()


def parse_crc32c(text: str) -> int | None:
    """Decode a checksum. Returns None if the text is not the checksum of a whole object."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return int.from_bytes(decoded, "big") if len(decoded) == 4 else None
