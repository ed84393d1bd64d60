"""The storages that need no server; those of servers are in tests/integration/rsm."""

from __future__ import annotations

from tests.contract.chunk_change_contract import ChunkChangeContract
from tests.contract.chunk_creation_contract import ChunkClosingContract, ChunkCreationContract


class TestChunkCreation(ChunkCreationContract):
    pass


class TestChunkClosing(ChunkClosingContract):
    pass


class TestChunkChange(ChunkChangeContract):
    pass
