"""Producer snapshots: whether the bytes of a `.snapshot` file are a whole one.

Owns only the envelope, version i16 = 1, crc u32 (CRC-32C of all behind it), then the entries: the
file is stored and handed back as it is. The broker writes it in place, after the segment that it
belongs to has been rolled, so a reader may meet half of one.
Source: org.apache.kafka.storage.internals.log.ProducerStateManager.
"""

from __future__ import annotations

import struct

from crc32c import crc32c

_ENVELOPE = struct.Struct(">hI")
_VERSION = 1


def is_whole_snapshot(data: bytes | memoryview) -> bool:
    """Say whether `data` is a producer snapshot of a known version with the right CRC."""
    if len(data) < _ENVELOPE.size:
        return False
    version, crc = _ENVELOPE.unpack_from(data)
    return bool(version == _VERSION and crc32c(memoryview(data)[_ENVELOPE.size :]) == crc)
