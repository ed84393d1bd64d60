"""Records that a user deletes from the broker before `rlm` has stored them."""

from __future__ import annotations

import json

from confluent_kafka import TopicPartition

from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_all
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import admin_client
from tests.services.ports import free_ports
from tests.services.waiting import wait_until


def test_gap_when_recorded_then_readers_of_both_kinds_step_over_it(
    host: BrokerHost, log: TieredLog
) -> None:
    """R6, scenario 83: readers get the next batch, as after compaction, and no error."""
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}"})
    log.produce(2)
    with host.metadata() as metadata:
        with host.running():
            host.wait_ready()
            log.set_policy(metadata)
            log.wait_tiered(metadata)
        stored_end = log.finished(metadata)[-1].offsets.end_offset
        log.produce(3)
        lost_end = log.base_offsets()[-2]
        bounds = TopicPartition(log.topic, 0, lost_end)
        admin = admin_client(host.cluster.bootstrap_servers)
        admin.delete_records([bounds])[bounds].result(30.0)

        with host.running():
            wait_until(lambda: metadata.partition_state(log.partition).gaps, describe="a gap")
            log.wait_tiered(metadata)
            through_gateway = read_all(f"127.0.0.1:{port}", log.topic)
            lines = host.rlm("read", f"{log.topic}:0", "--json").splitlines()
            explained = host.rlm("explain", f"{log.topic}:0", str(stored_end), "--json")
        (gap,) = metadata.partition_state(log.partition).gaps
    end_offset = through_gateway[-1] + 1
    assert (gap.offsets.start_offset, gap.offsets.end_offset) == (stored_end, lost_end)
    assert through_gateway == [*range(stored_end), *range(lost_end, end_offset)]
    assert [json.loads(line)["offset"] for line in lines] == through_gateway
    explanation = json.loads(explained)
    assert (explanation["location"], explanation["gap"]["reason"]) == ("gap", "external_start")
