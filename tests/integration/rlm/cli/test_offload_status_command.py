"""`rlm offload-status` and `rlm offload --no-wait` against a real broker without a manager."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from rlmm.events.offload import OffloadRequested
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster


def test_offload_status_when_no_manager_answers_then_only_a_request_makes_it_fail(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    host = BrokerHost(tmp_path, kafka, metadata_topic=f"{topic_name}-metadata")
    log = TieredLog.create(kafka, topic_name, host.store)
    with host.metadata() as metadata:
        log.set_policy(metadata)
        refused = host.try_rlm("offload", topic_name, "--no-wait")
        before = host.rlm("offload-status", topic_name)
        request = OffloadRequested(event_id=uuid4(), topic_id_partition=log.partition, offset=5)
        assert metadata.publish(request).accepted

        after = host.try_rlm("offload-status", f"{topic_name}:0", "--json")

    assert refused.returncode == 1
    assert "nothing was requested" in refused.stderr
    assert "not requested" in before
    (partition,) = json.loads(after.stdout)["partitions"]
    assert after.returncode == 1
    assert (partition["state"], partition["requested_offset"]) == ("unknown", 5)
    assert "no live manager is registered" in partition["reason"]
