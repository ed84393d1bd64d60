"""A tiered topic is deleted, and another one of its name is made."""

from __future__ import annotations

import json

from rlmm.events.policy import topic_policy
from rsm.segment.ids import id_to_text
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.waiting import wait_until

_DEADLINE_S = 60.0


def test_topic_when_deleted_and_created_again_then_the_old_data_is_deleted_and_the_new_stays(
    kafka: KafkaCluster, host: BrokerHost, log: TieredLog, topic_name: str
) -> None:
    """Scenarios 38, 76: `rlm` deletes all data of the old topic id, and none of the new one.

    An operator pauses deletions within the grace. `rlm` deletes nothing until they are resumed.
    """
    host.set(
        **{
            "remote.copy.attempt.timeout.ms": "2000",
            "remote.orphan.grace.ms": "0",
            # Longer than a command takes: the pause comes after the deletion and within the grace.
            "remote.topic.deletion.grace.ms": "20000",
        }
    )
    log.produce(2)
    with host.metadata() as metadata, host.running():
        host.rlm("topic", "set", topic_name, "--local-retention-ms", "0")
        log.wait_tiered(metadata)
        old_id, old_keys = log.partition.topic_id, log.object_keys()
        admin = admin_client(kafka.bootstrap_servers)
        admin.delete_topics([topic_name])[topic_name].result(10.0)
        paused = host.rlm("pause", topic_name, "delete")
        wait_until(lambda: not log.directories(), _DEADLINE_S, "the broker has deleted it")
        alone = json.loads(host.rlm("status", topic_name, "--json"))
        again = TieredLog.create(kafka, topic_name, host.store)
        again.produce(2)

        host.rlm("topic", "set", topic_name, "--local-retention-ms", "0")

        again.wait_tiered(metadata)
        wait_until(
            lambda: "topic is paused" in host.log_path.read_text(),
            _DEADLINE_S,
            "a report that it waits",
        )
        problems = json.loads(host.rlm("status", topic_name, "--json"))["problems"]
        commands = {each["kind"]: each["next_command"] for each in problems}
        of_old = f"--topic-id {id_to_text(old_id)}"
        assert commands["topic_deleted"] == f"rlm read {topic_name} {of_old} --from-store --json"
        assert [each["kind"] for each in alone["problems"]] == ["topic_deleted"]
        assert alone["partitions"] == []
        assert paused == f"{topic_name}: paused: delete\n"
        assert topic_policy(metadata, old_id) is not None
        assert old_keys <= log.object_keys()
        asked = host.rlm("resume", topic_name, "--dry-run")
        resumed = host.rlm("resume", topic_name, "--yes")
        wait_until(lambda: topic_policy(metadata, old_id) is None, _DEADLINE_S, "no policy")
        assert f"topic {topic_name} of id {id_to_text(old_id)} was deleted" in asked
        assert asked.endswith(f"{topic_name}: would remain paused: nothing\n")
        assert resumed == f"{topic_name}: paused: nothing\n"
        assert not old_keys & log.object_keys()
        assert len(again.finished(metadata)) >= 2
        wait_until(lambda: host.readiness()[0] == 200, _DEADLINE_S, "ready")
