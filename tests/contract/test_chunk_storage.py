"""The contract of storages that need no server; tests/integration/rsm has the others."""

from __future__ import annotations

from tests.contract.chunk_change_contract import ChunkChangeContract
from tests.contract.chunk_creation_contract import ChunkClosingContract, ChunkCreationContract


class TestChunkCreation(ChunkCreationContract):
    pass


class TestChunkClosing(ChunkClosingContract):
    pass


class TestChunkChange(ChunkChangeContract):
    pass
