"""`rlm leases` against a real broker, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from rlmm.events.read_lease import ReadLeaseTaken
from rsm.segment.ranges import OffsetRange
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster


def test_leases_release_when_confirmed_by_an_option_then_only_that_holders_end(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    host = BrokerHost(tmp_path, kafka, metadata_topic=f"{topic_name}-metadata")
    log = TieredLog.create(kafka, topic_name, host.store)
    release = ("leases", "release", topic_name, "--holder", "a job")
    with host.metadata() as metadata:
        log.set_policy(metadata)
        for holder in ("a job", "another job"):
            lease = ReadLeaseTaken(
                event_id=uuid4(),
                lease_id=uuid4(),
                topic_id_partition=log.partition,
                offsets=OffsetRange(start_offset=0, end_offset=10),
                duration_ms=600_000,
                holder=holder,
            )
            assert metadata.publish(lease).accepted

        unconfirmed = host.try_rlm(*release)
        shown = host.rlm(*release, "--dry-run")
        host.rlm(*release, "--yes")
        left = json.loads(host.rlm("leases", "list", "--json"))

    assert unconfirmed.returncode == 2
    assert "--yes" in unconfirmed.stderr
    assert "holder: a job" in shown
    assert [each["holder"] for each in left["leases"]] == ["another job"]
