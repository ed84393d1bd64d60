"""kill -9 in an upload of a streamed segment to S3: the next start aborts it, and stores all once.

The short form kills in the middle of the data, which is uploaded in parts, and in the middle of the
index, a single request. The long form, `make kills`, has each effect.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.metadata import SegmentState
from tests.e2e.broker_host import BrokerHost
from tests.e2e.killed_manager import killed_at
from tests.e2e.plain_consumer import read_records
from tests.e2e.s3_store import BUCKET
from tests.e2e.streamed_log import (
    STORED_WITHIN_S,
    assert_adjoining,
    produce_transactions,
    set_mode,
)
from tests.e2e.test_stream_killed import STREAM_EFFECTS
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.s3 import S3Server
from tests.services.waiting import wait_until

SHORT_EFFECTS = ("half data", "half index")


def _uploads(server: S3Server) -> list[str]:
    """Return the names of all unfinished uploads."""
    found = server.client().list_multipart_uploads(Bucket=BUCKET)
    return [each["Key"] for each in found.get("Uploads", ())]


def _wait_clean(server: S3Server, log: TieredLog, metadata: RemoteLogMetadataManager) -> None:
    """Wait until the bucket has the objects of finished segments, and nothing else."""

    def is_clean() -> bool:
        wanted = {stored.key for each in log.finished(metadata) for stored in each.objects}
        listed = server.client().list_objects_v2(Bucket=BUCKET).get("Contents", ())
        found = {each["Key"] for each in listed if not each["Key"].endswith(".json")}
        open_states = SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED
        return (
            found == wanted and not _uploads(server) and not log.in_states(metadata, *open_states)
        )

    wait_until(is_clean, STORED_WITHIN_S, lambda: f"unfinished uploads: {_uploads(server)}")


@pytest.mark.parametrize(
    "effects", [SHORT_EFFECTS, pytest.param(STREAM_EFFECTS, marks=pytest.mark.long)]
)
def test_stream_when_killed_in_uploads_then_the_last_start_ends_them_and_stores_all_once(
    effects: tuple[str, ...],
    kafka: KafkaCluster,
    host: BrokerHost,
    log: TieredLog,
    s3_server: S3Server,
    s3_gateway_port: int,
    tmp_path: Path,
) -> None:
    """Scenario 27 on S3. Parts that a killed process has sent are not an object."""
    committed: dict[int, bytes] = {}
    with host.metadata() as metadata:
        set_mode(metadata, log)
        for effect in effects:
            committed |= produce_transactions(kafka, log, 4)
            with killed_at(f"{effect}#1", host, tmp_path / "journal"):
                pass
            if effect == "half data":
                assert len(_uploads(s3_server)) == 1

        with host.running():
            host.wait_ready()
            committed |= produce_transactions(kafka, log, 40)  # so that the broker has rolled
            wait_until(
                lambda: log.covered_end_offset(metadata, 0) == log.end_offset(),
                STORED_WITHIN_S,
                lambda: f"stored: {[str(each.offsets) for each in log.finished(metadata)]}",
            )
            _wait_clean(s3_server, log, metadata)
            segments = log.finished(metadata)
            set_mode(metadata, log, local_retention_ms=0)
            wait_until(lambda: log.local_start_offset() > 0, STORED_WITHIN_S, "trimmed")
            read = read_records(f"127.0.0.1:{s3_gateway_port}", log.topic)

    assert_adjoining(segments)
    assert read == sorted(committed.items())
