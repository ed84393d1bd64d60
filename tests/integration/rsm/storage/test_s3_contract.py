"""The contracts of all chunk storages, for the S3 binding on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rsm.storage.s3.bucket import S3Bucket
from rsm.storage.s3.settings import S3Settings
from rsm.storage.s3.storage import S3ChunkStorage
from tests.contract.chunk_change_contract import ChunkChangeContract
from tests.contract.chunk_creation_contract import ChunkClosingContract, ChunkCreationContract
from tests.contract.ledger_offloader_contract import LedgerOffloaderContract
from tests.services.waiting import wait_until


@pytest.fixture(scope="module")
def shared() -> list[S3ChunkStorage]:
    """The only storage of this module's tests, because it takes long to create a client."""
    return []


@pytest.fixture
def storage(s3_settings: S3Settings, shared: list[S3ChunkStorage]) -> Iterator[S3ChunkStorage]:
    """An empty bucket, emptied again after the test; fails if an upload is left open."""
    if not shared:
        shared.append(S3ChunkStorage(S3Bucket(s3_settings)))
    (storage,) = shared
    yield storage
    # The server refuses some deletions while other clients create and remove the same directory.
    wait_until(lambda: _is_emptied(storage))
    assert "Uploads" not in storage._bucket.ask("list_multipart_uploads")


def _is_emptied(storage: S3ChunkStorage) -> bool:
    left = [info.name for info in storage.list("")]
    storage.delete_many(left)
    return not left


class TestS3ChunkCreation(ChunkCreationContract):
    pass


class TestS3ChunkClosing(ChunkClosingContract):
    @pytest.fixture
    def shared(self) -> list[S3ChunkStorage]:
        """A storage for one test that may close it; other tests need theirs open."""
        return []


class TestS3ChunkChange(ChunkChangeContract):
    pass


class TestS3LedgerOffloader(LedgerOffloaderContract):
    block_bytes = 5 << 20  # S3 accepts no smaller part
