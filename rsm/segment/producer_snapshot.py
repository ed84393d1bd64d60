"""Checks whether a producer snapshot (a `.snapshot` file) is complete.

Knows only the envelope: version i16 = 1, crc u32 (CRC-32C of all bytes after it), then the entries.
The file is stored and returned unchanged. The broker writes the file in place after it has rolled
the segment, so a reader may see an incomplete file.
Source: org.apache.kafka.storage.internals.log.ProducerStateManager.
"""

from __future__ import annotations

import struct

from crc32c import crc32c

_ENVELOPE = struct.Struct(">hI")
_VERSION = 1


def is_whole_snapshot(data: bytes | memoryview) -> bool:
    """Return whether `data` is a producer snapshot of a known version with a correct CRC."""
    if len(data) < _ENVELOPE.size:
        return False
    version, crc = _ENVELOPE.unpack_from(data)
    return bool(version == _VERSION and crc32c(memoryview(data)[_ENVELOPE.size :]) == crc)
