"""DeleteRecords through a gateway, over both tiers, compared with a broker that has it all."""

from __future__ import annotations

from pathlib import Path

from rlm.wire.api.offset_for_leader_epoch import OffsetForLeaderPartition
from rlm.wire.error_codes import ErrorCode
from rlmm.spi import RemoteLogMetadataManager
from rsm.layout.keys import ObjectKeys
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.integration.rlm.gateway.consumed import record_bytes, whole_batches
from tests.integration.rlm.gateway.crafted_logs import times_around
from tests.integration.rlm.gateway.raw_requests import (
    delete_records,
    epoch_end,
    fetch,
    from_offset,
    list_offsets,
)
from tests.integration.rlm.gateway.running_gateway import RunningGateway
from tests.integration.rlm.gateway.twin_topics import Twin, TwinTopics
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.waiting import wait_until

_HIGH_WATERMARK = -1
_LATEST, _EARLIEST, _MAX_TIMESTAMP = -1, -2, -3


def test_delete_records_when_below_the_local_start_then_the_log_starts_there_in_both_tiers(
    twin_topics: TwinTopics, gateway: RunningGateway, client: WireClient, broker: WireClient
) -> None:
    """Scenarios 43, 47, 75, R13: first for readers, at once; then in the store."""
    twin = twin_topics["deleted"]
    assert delete_records(client, twin.tiered.topic, 2, 1_000) == delete_records(
        broker, twin.whole.topic, 2, 1_000
    )
    assert gateway.metadata.partition_state(twin.tiered).first_readable_offset in (None, 0)
    for offset in (13, 27):
        seen = delete_records(client, twin.tiered.topic, 2, offset)
        assert seen == delete_records(broker, twin.whole.topic, 2, offset)
        wait_until(lambda: _same_fetches(twin, client, broker))
        # Until a broker has deleted a file below its log start, lookups by time may find nothing.
        wait_until(lambda: list_offsets(broker, twin.whole.topic, 7, 0).offset >= 0)
        _require_same_answers(twin, client, broker)
    before = _stored_bases(gateway.metadata, twin.tiered)
    with twin_topics.host.running() as _:
        wait_until(lambda: _stored_bases(gateway.metadata, twin.tiered) == [20, 30, 40])
        wait_until(
            lambda: not _unrecorded(twin_topics.host.store, gateway.metadata, twin.tiered),
            describe=lambda: _unrecorded(twin_topics.host.store, gateway.metadata, twin.tiered),
        )
    assert before == [0, 10, 20, 30, 40]
    _require_same_answers(twin, client, broker)
    assert _same_fetches(twin, client, broker)


def test_delete_records_when_to_the_high_watermark_then_nothing_of_either_tier_is_read(
    twin_topics: TwinTopics, client: WireClient, broker: WireClient
) -> None:
    """Scenario 75: records of either tier are deleted at once."""
    twin = twin_topics["emptied"]
    seen = delete_records(client, twin.tiered.topic, 2, _HIGH_WATERMARK)
    assert seen == delete_records(broker, twin.whole.topic, 2, _HIGH_WATERMARK)
    assert seen.low_watermark == twin.log.end_offset
    wait_until(lambda: _same_fetches(twin, client, broker))
    _require_same_answers(twin, client, broker)


def _require_same_answers(twin: Twin, client: WireClient, broker: WireClient) -> None:
    for question in (_LATEST, _EARLIEST, _MAX_TIMESTAMP, *times_around(twin.log)):
        seen = list_offsets(client, twin.tiered.topic, 7, question)
        assert seen == list_offsets(broker, twin.whole.topic, 7, question), question
    for epoch in range(3):
        asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        seen_end = epoch_end(client, twin.tiered.topic, 4, asked)
        assert seen_end == epoch_end(broker, twin.whole.topic, 4, asked), epoch


def _same_fetches(twin: Twin, client: WireClient, broker: WireClient) -> bool:
    """Return whether both answer alike at all offsets; records may differ only in length."""
    is_same = True
    for offset in range(twin.log.end_offset):
        seen = fetch(client, twin.tiered, 18, from_offset(offset))
        direct = fetch(broker, twin.whole, 18, from_offset(offset))
        if seen.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            is_same = False
            continue
        if seen.error_code != direct.error_code or seen.log_start_offset != direct.log_start_offset:
            is_same = False
            continue
        found = record_bytes(seen.records)
        assert record_bytes(direct.records).startswith(found)
        assert bool(whole_batches(seen.records)) == bool(direct.records)
    return is_same


def _stored(
    metadata: RemoteLogMetadataManager, partition: TopicIdPartition
) -> list[RemoteLogSegmentMetadata]:
    records = metadata.list_remote_log_segments(
        partition, states=(SegmentState.COPY_SEGMENT_FINISHED,)
    )
    return [record.metadata for record in records]


def _stored_bases(metadata: RemoteLogMetadataManager, partition: TopicIdPartition) -> list[int]:
    return [each.offsets.start_offset for each in _stored(metadata, partition)]


def _unrecorded(
    store: Path, metadata: RemoteLogMetadataManager, partition: TopicIdPartition
) -> str:
    """Return the partition's objects of no finished segment; empty if none is left."""
    recorded = {o.key for each in _stored(metadata, partition) for o in each.objects}
    listed = FilesystemChunkStorage(store).list(ObjectKeys().partition_prefix(partition))
    found = {each.name for each in listed}
    assert recorded <= found
    return " ".join(sorted(found - recorded))
