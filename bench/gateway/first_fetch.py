"""Measures the time to the first bytes of a cold fetch: one from a segment not read before.

The peer reads only what the fetch must read from the store: the object with the indexes, and as
many bytes of the log as the client requests. For each segment, the peer runs first, then the fetch.
Segments are read from the newest to the oldest, so that no fetch hits a prefetched range. The
offset in each segment is random, because the middle of a segment is the end of a chunk.
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from random import Random

from bench.gateway.delayed_gateway import running_delayed_gateway
from bench.gateway.kafka_tiering import KafkaTiering
from bench.gateway.stage import TIERED, GatewayStage
from bench.gateway.throughput import Readers
from bench.gateway.wire_client import FETCH_BYTES, WireClient
from bench.measurement import Measurement, at_most, of_runs
from rlm.cli.invocation.session import open_session
from rlm.config.load import load_command_config
from rlm.worker.store_access import open_chunk_storage
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage

_TIMEOUT_MS = 30_000
_MS = 1000


def measure_first_fetch(stage: GatewayStage, _readers: Readers) -> list[Measurement]:
    """Measure cold fetches through the stage's gateway, which must not have read the store yet."""
    return _measure(stage, stage.gateway_address, stage.rlm.configuration, "")


def measure_delayed_first_fetch(stage: GatewayStage, _readers: Readers) -> list[Measurement]:
    """Measure cold fetches from the slow store."""
    which = f", {stage.sizes.delay_ms} ms store"
    with running_delayed_gateway(stage) as gateway:
        return _measure(stage, gateway.address, gateway.configuration, which)


def _measure(
    stage: GatewayStage, address: str, configuration: Path, which: str
) -> list[Measurement]:
    config = load_command_config(configuration)
    topic_id = stage.dataset.partition(TIERED).topic_id
    with (
        closing(open_chunk_storage(config.required_storage())) as storage,
        WireClient(address) as client,
    ):
        # This local read warms the connection.
        client.first_bytes_s(topic_id, stage.trimmed.end_offset)
        reads_ms: list[float] = []
        fetches_ms: list[float] = []
        random = Random(1)
        for segment in _segments(stage):
            share = random.random()
            offset = segment.offsets.start_offset + int(len(segment.offsets) * share)
            reads_ms.append(_read_s(storage, segment, share) * _MS)
            fetches_ms.append(client.first_bytes_s(topic_id, offset) * _MS)
    both = f"index + range read{which}"
    pairs = zip(fetches_ms, reads_ms, strict=True)
    return [
        of_runs(both, reads_ms, unit="ms"),
        of_runs(f"first cold fetch{which}", fetches_ms, unit="ms", peer=both),
        of_runs(
            f"cold fetch − both reads{which}",
            [fetch_ms - read_ms for fetch_ms, read_ms in pairs],
            unit="ms",
            peer=both,
            goal=at_most(3),
        ),
    ]


def measure_peers_first_fetch(peer: KafkaTiering) -> Measurement:
    """Measure cold fetches from Kafka's own tiering.

    The trimmed offsets are divided into equal ranges, as many as the topic has segments. Each
    range has one fetch, at a random offset.
    """
    segment_count = peer.dataset.sizes.total_bytes // peer.dataset.sizes.segment_bytes
    step = len(peer.trimmed) // segment_count
    random = Random(1)
    offsets = [step * number + random.randrange(step) for number in reversed(range(segment_count))]
    topic_id = peer.dataset.partition(TIERED).topic_id
    with WireClient(peer.address) as client:
        client.first_bytes_s(topic_id, peer.trimmed.end_offset)
        fetches_ms = [client.first_bytes_s(topic_id, offset) * _MS for offset in offsets]
    return of_runs("first cold fetch, Kafka's tiering", fetches_ms, unit="ms")


def _segments(stage: GatewayStage) -> list[RemoteLogSegmentMetadata]:
    """Return the stored segments that the broker has trimmed, newest first."""
    config = load_command_config(stage.rlm.configuration)
    partition = stage.dataset.partition(TIERED)
    with open_session(config, timeout_ms=_TIMEOUT_MS) as session:
        records = session.metadata.list_remote_log_segments(
            partition, states=(SegmentState.COPY_SEGMENT_FINISHED,)
        )
        segments = [record.metadata for record in records]
    trimmed = [s for s in segments if s.offsets.end_offset <= stage.trimmed.end_offset]
    return trimmed[::-1]


def _read_s(storage: ChunkStorage, segment: RemoteLogSegmentMetadata, share: float) -> float:
    """Return the seconds to read a segment's indexes and FETCH_BYTES at `share` of its log."""
    log, indexes = segment.objects[0], segment.objects[-1]
    assert indexes.length_bytes is not None
    position = int(segment.segment_size_bytes * share)
    started_s = time.monotonic()
    storage.read_range(indexes.key, ByteRange(start_position=0, end_position=indexes.length_bytes))
    storage.read_range(
        log.key,
        ByteRange(
            start_position=position,
            end_position=min(position + FETCH_BYTES, segment.segment_size_bytes),
        ),
    )
    return time.monotonic() - started_s
