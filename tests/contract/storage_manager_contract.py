"""The contract of a remote storage manager, as far as its own methods show it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rsm.segment.checkpoints import parse_leader_epochs
from rsm.segment.errors import CorruptError, FencedError, NotFoundError, RetriableError
from rsm.segment.ranges import ByteRange
from rsm.spi import IndexType, RemoteStorageManager
from tests.contract.segments import (
    COMPANIONS,
    LOG,
    LOG_PIECES,
    CountedAttempt,
    copied,
    finished,
    planned,
    segment_data,
)
from tests.contract.sources import failing_source, source_of

WHOLE = ByteRange(start_position=0, end_position=1 << 40)


class StorageManagerContract:
    """A test class inherits the contract, and its module defines the fixture `manager`."""

    @pytest.mark.parametrize(
        ("start", "end"),
        [(0, 1 << 40), (0, 0), (5, 9), (70, 170), (len(LOG) - 1, len(LOG) + 1), (len(LOG), 999)],
    )
    def test_fetch_log_segment_when_asked_for_a_range_then_cut_at_the_end(
        self, manager: RemoteStorageManager, start: int, end: int
    ) -> None:
        metadata = copied(manager)
        positions = ByteRange(start_position=start, end_position=end)

        fetched = manager.fetch_log_segment(metadata, positions)
        target = bytearray(len(LOG))
        fetched_bytes = manager.fetch_log_segment_into(metadata, positions, memoryview(target))

        assert fetched == LOG[start:end]
        assert target[:fetched_bytes] == fetched

    def test_fetch_index_when_segment_has_it_then_the_brokers_bytes(
        self,
        manager: RemoteStorageManager,
    ) -> None:
        metadata = copied(manager)

        fetched = {kind: manager.fetch_index(metadata, kind) for kind in IndexType}

        checkpoint = fetched.pop(IndexType.LEADER_EPOCH)
        assert parse_leader_epochs(checkpoint, file="fetched") == COMPANIONS.lineage
        assert fetched == {
            IndexType.OFFSET: b"offset index",
            IndexType.TIMESTAMP: b"",
            IndexType.TRANSACTION: b"transaction index",
            IndexType.PRODUCER_SNAPSHOT: b"producer snapshot",
        }

    def test_fetch_index_when_broker_had_none_then_not_found_and_the_rest_is_there(
        self,
        manager: RemoteStorageManager,
    ) -> None:
        """Scenario 16: the absence of a snapshot or a transaction index is recorded."""
        absent = replace(COMPANIONS, transaction_index=None, producer_snapshot=None)
        metadata = planned(manager)
        copied = manager.copy_log_segment_data(
            metadata, segment_data(companions=absent), CountedAttempt()
        )
        metadata = finished(metadata, copied)

        for kind in (IndexType.TRANSACTION, IndexType.PRODUCER_SNAPSHOT):
            with pytest.raises(NotFoundError):
                manager.fetch_index(metadata, kind)
        assert manager.fetch_index(metadata, IndexType.OFFSET) == b"offset index"

    def test_fetch_aborted_transactions_when_marker_lies_in_a_later_segment_then_returned(
        self,
        manager: RemoteStorageManager,
    ) -> None:
        """R19: transactions that are aborted after the segment's end are stored with it."""
        metadata = copied(manager)

        assert manager.fetch_aborted_transactions(metadata) == COMPANIONS.aborted_transactions

    def test_copy_when_it_fails_then_its_error_is_raised_and_the_next_one_is_whole(
        self, manager: RemoteStorageManager
    ) -> None:
        fenced = CountedAttempt(error=FencedError("leadership lost"))

        with pytest.raises(FencedError, match="leadership lost"):
            manager.copy_log_segment_data(planned(manager), segment_data(), fenced)
        with pytest.raises(RetriableError, match="the source broke"):
            manager.copy_log_segment_data(
                planned(manager), segment_data(failing_source(*LOG_PIECES)), CountedAttempt()
            )
        with pytest.raises(CorruptError):
            manager.copy_log_segment_data(
                planned(manager), segment_data(source_of(LOG + b"!")), CountedAttempt()
            )

        assert manager.fetch_log_segment(copied(manager), WHOLE) == LOG

    def test_delete_when_called_twice_then_only_that_segment_is_gone(
        self, manager: RemoteStorageManager
    ) -> None:
        kept, deleted = copied(manager, 1), copied(manager, 2)

        manager.delete_log_segment_data(deleted)
        manager.delete_log_segment_data(deleted)

        assert manager.fetch_log_segment(kept, WHOLE) == LOG
        with pytest.raises(NotFoundError):
            manager.fetch_log_segment(deleted, WHOLE)
        with pytest.raises(NotFoundError):
            manager.fetch_index(deleted, IndexType.OFFSET)
