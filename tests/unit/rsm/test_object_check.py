from __future__ import annotations

import pytest
from crc32c import crc32c

from rsm.object_check import ObjectCheck
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import StoredObject
from rsm.spi import CopyAttempt
from rsm.storage.memory import MemoryChunkStorage

CONTENT = bytes(range(256)) * 9
KEY = "orders/0.log"
RECORDED = StoredObject(key=KEY, length_bytes=len(CONTENT), crc32c=crc32c(CONTENT))


class _NoBounds(CopyAttempt):
    def check(self) -> None:
        """Allow everything: the attempt has no deadline."""


def _check(content: bytes | None, *, read: bool) -> ObjectCheck:
    storage = MemoryChunkStorage(wall_ms=lambda: 0)
    if content is not None:
        storage.create_with_content(KEY, BytesSource(content=content))
    return ObjectCheck(storage, read=read, attempt=_NoBounds())


@pytest.mark.parametrize("read", [False, True])
def test_object_when_it_is_as_recorded_then_has_no_fault(read: bool) -> None:
    assert _check(CONTENT, read=read).fault_of(RECORDED) is None


@pytest.mark.parametrize("read", [False, True])
def test_object_when_it_is_gone_then_is_missing(read: bool) -> None:
    fault = _check(None, read=read).fault_of(RECORDED)

    assert fault is not None
    assert (fault.object_key, fault.is_missing) == (KEY, True)


def test_object_when_it_is_shorter_then_is_corrupt() -> None:
    fault = _check(CONTENT[:-1], read=False).fault_of(RECORDED)

    assert fault is not None
    assert not fault.is_missing
    assert "length_bytes=2303" in fault.reason


def test_object_when_a_bit_was_flipped_then_reading_it_finds_that() -> None:
    fault = _check(bytes([CONTENT[0] ^ 1]) + CONTENT[1:], read=True).fault_of(RECORDED)

    assert fault is not None
    assert not fault.is_missing
    assert "crc32c=" in fault.reason
