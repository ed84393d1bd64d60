"""The contracts of all chunk storages, for the HDFS binding on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.hdfs.storage import HdfsChunkStorage
from tests.contract.chunk_change_contract import ChunkChangeContract
from tests.contract.chunk_creation_contract import ChunkClosingContract, ChunkCreationContract
from tests.contract.ledger_offloader_contract import LedgerOffloaderContract


@pytest.fixture
def storage(hdfs_settings: HdfsSettings) -> Iterator[HdfsChunkStorage]:
    """An empty directory, emptied again after the test."""
    storage = HdfsChunkStorage(hdfs_settings)
    yield storage
    storage.delete_many([info.name for info in storage.list("")])


class TestHdfsChunkCreation(ChunkCreationContract):
    pass


class TestHdfsChunkClosing(ChunkClosingContract):
    pass


class TestHdfsChunkChange(ChunkChangeContract):
    pass


class TestHdfsLedgerOffloader(LedgerOffloaderContract):
    pass
