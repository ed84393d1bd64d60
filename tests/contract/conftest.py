"""Runs every contract test of storages over each chunk storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rsm.storage.chunk_storage import ChunkStorage
from tests.contract.chunk_storages import CHUNK_STORAGES


@pytest.fixture(params=sorted(CHUNK_STORAGES))
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChunkStorage]:
    """An empty store."""
    store = CHUNK_STORAGES[request.param](tmp_path)
    yield store
    store.close()
