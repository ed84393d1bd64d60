"""A manager is killed with parts of a stream on S3: the next one does not send them again."""

from __future__ import annotations

from contextlib import suppress

from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_records
from tests.e2e.s3_store import BUCKET
from tests.e2e.streamed_log import STORED_WITHIN_S, set_mode
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.s3 import S3Server
from tests.services.waiting import wait_until

_PART = 5 << 20
_OPEN_MS = 600_000
_OBJECT_BYTES = 1 << 30
_SENT_PARTS = 3


def _sent(server: S3Server) -> dict[str, int]:
    """Return the number of parts of each unfinished upload, by object name."""
    client = server.client()
    sent: dict[str, int] = {}
    for each in client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", ()):
        with suppress(client.exceptions.NoSuchUpload):  # the upload has ended in the meantime
            listed = client.list_parts(
                Bucket=BUCKET, Key=each["Key"], UploadId=each["UploadId"]
            ).get("Parts", ())
            sent[each["Key"]] = len(listed)
    return sent


def test_stream_when_its_manager_is_killed_then_its_parts_are_not_sent_again(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, s3_server: S3Server, s3_gateway_port: int
) -> None:
    """Scenario 27: the next process has no stored segment, so it ends its first one at once."""
    host.set(**{"rsm.config.storage.s3.multipart.upload.part.size": str(_PART)})
    with host.metadata() as metadata:
        set_mode(metadata, log, rollover_ms=_OPEN_MS, object_bytes=_OBJECT_BYTES)
        log.produce(18)
        with host.started("-m", "rlm", "run", "--config", str(host.config_path)):
            wait_until(
                lambda: sum(_sent(s3_server).values()) >= _SENT_PARTS,
                STORED_WITHIN_S,
                lambda: f"parts: {_sent(s3_server)}",
            )
        (opened,) = _sent(s3_server)

        with host.running():
            host.wait_ready()
            wait_until(
                lambda: log.covered_end_offset(metadata, 0) == log.end_offset(),
                STORED_WITHIN_S,
                lambda: f"parts: {_sent(s3_server)}",
            )
            reused_bytes = sum(host.metrics("rlm_stream_reused_bytes_total").values())
            (stored,) = log.finished(metadata)
            wait_until(
                lambda: _keys(s3_server) == set(stored.object_keys), STORED_WITHIN_S, "clean"
            )
            written = read_records(kafka.bootstrap_servers, log.topic)
            log.produce(2)  # so that the broker has rolled the last file of the stored segment
            set_mode(metadata, log, local_retention_ms=0)
            wait_until(lambda: log.local_start_offset() > 0, STORED_WITHIN_S, "trimmed")
            read = read_records(f"127.0.0.1:{s3_gateway_port}", log.topic)

    assert reused_bytes >= _SENT_PARTS * _PART
    assert opened not in stored.object_keys
    assert read[: len(written)] == written


def _keys(server: S3Server) -> set[str]:
    """Return the names of all unfinished uploads, and of all objects except `originals/`."""
    listed = server.client().list_objects_v2(Bucket=BUCKET).get("Contents", ())
    return {each["Key"] for each in listed if not each["Key"].endswith(".json")} | set(
        _sent(server)
    )
