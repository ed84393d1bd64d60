"""Checks a store's errors if its bucket, container or directory is missing."""

from __future__ import annotations

import pytest

from rsm.segment.errors import RetriableError
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage


def assert_never_not_found(storage: ChunkStorage, text: str) -> None:
    """Check that every request raises a retriable error whose message contains `text`."""
    for ask in (
        storage.check_access,
        lambda: storage.exists("a"),
        lambda: storage.info("a"),
        lambda: storage.read_range("a", ByteRange(start_position=0, end_position=1)),
        lambda: storage.delete("a"),
        lambda: list(storage.list("")),
        lambda: storage.create("d/a"),
    ):
        with pytest.raises(RetriableError, match=text):
            ask()
    assert [o.error is None for o in storage.delete_many(["a"])] == [False]
