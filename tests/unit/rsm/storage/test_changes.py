from __future__ import annotations

import pytest

from rsm.segment.errors import InvalidConfigError
from rsm.storage.changes import delete_joined
from rsm.storage.memory import MemoryChunkStorage


def test_delete_joined_when_one_cannot_be_deleted_then_reported_and_the_others_are_gone() -> None:
    storage = MemoryChunkStorage(wall_ms=lambda: 0)
    storage.create("a")

    with pytest.raises(InvalidConfigError):
        delete_joined(storage, ["absent", "../bad", "a"])

    assert not list(storage.list(""))
