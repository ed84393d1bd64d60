"""Objects that are read whole: their size is limited before the read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rsm.object_reader import WHOLE_OBJECT_MAX_BYTES, ObjectReader
from rsm.segment.errors import CorruptError
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import StoredObject
from rsm.storage.filesystem.storage import FilesystemChunkStorage

TOO_LARGE_BYTES = WHOLE_OBJECT_MAX_BYTES + 1


@pytest.mark.parametrize("recorded_bytes", [None, TOO_LARGE_BYTES])
def test_decoded_when_the_object_is_too_large_then_corrupt(
    tmp_path: Path, recorded_bytes: int | None
) -> None:
    storage = FilesystemChunkStorage(tmp_path)
    storage.create_with_content("a", BytesSource(content=b"x"))
    os.truncate(tmp_path / "a", TOO_LARGE_BYTES)
    objects = ObjectReader(storage, decoded_bytes=0)

    with pytest.raises(CorruptError, match="cannot read the object: it is too large"):
        objects.decoded(StoredObject(key="a", length_bytes=recorded_bytes), len)


@pytest.mark.parametrize("recorded_bytes", [None, 3])
def test_decoded_when_the_object_is_small_then_its_decoded_content(
    tmp_path: Path, recorded_bytes: int | None
) -> None:
    storage = FilesystemChunkStorage(tmp_path)
    storage.create_with_content("a", BytesSource(content=b"abc"))
    objects = ObjectReader(storage, decoded_bytes=0)

    assert objects.decoded(StoredObject(key="a", length_bytes=recorded_bytes), bytes) == b"abc"
