"""`rlm topic` against a real broker, as a user types it. R9, D1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]  # no __all__

from rlm.topics.originals_mirror import StoredOriginals
from rsm.layout.originals import OriginalSettings, OriginalsKeys
from rsm.segment.ids import id_from_text
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.integration.rlm.cli.rlm_command import Rlm
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.ports import free_ports

DYNAMIC_TOPIC_CONFIG = 1  # the source that DescribeConfigs reports for the topic's own value
LIST = (sys.executable, "-m", "rlm", "topic", "list")
LIFTED = {"retention.ms": "-1", "retention.bytes": "-1"}


def test_topic_set_when_topic_was_just_created_then_active_and_broker_deletes_nothing(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str
) -> None:
    kafka.create_topic(topic_name, config={"retention.ms": "86400000"})

    done = rlm("set", topic_name, "--local-retention-ms", "1000", "--retention-bytes", "-1")

    assert done.returncode == 0, done.stderr
    assert "note: local.retention.ms=1000 does not apply to records younger than" in done.stderr
    assert overrides(kafka, topic_name) == LIFTED
    policy = rlm.policies()[topic_name]
    assert policy["state"] == "ACTIVE"
    assert (policy["retention_ms"], policy["local_retention_ms"]) == (86400000, 1000)
    assert policy["originals"] == {"retention.ms": "86400000", "retention.bytes": None}


@pytest.mark.parametrize(
    "before", [{}, {"retention.ms": "86400000"}, {"retention.bytes": "1048576"}]
)
def test_topic_disable_when_all_is_stored_then_overrides_are_as_they_were(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str, before: dict[str, str]
) -> None:
    """R9: an absent override stays absent."""
    kafka.create_topic(topic_name, config=before)
    assert rlm("set", topic_name).returncode == 0

    done = rlm("disable", topic_name)

    assert done.returncode == 0, done.stderr
    assert overrides(kafka, topic_name) == before
    assert rlm.policies()[topic_name]["state"] == "DISABLED"


def test_topic_disable_when_local_records_are_past_the_retention_then_refuses_with_offsets(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str
) -> None:
    """R9: the refusal names the records at risk, and the topic stays tiered."""
    kafka.create_topic(topic_name)
    assert rlm("set", topic_name, "--retention-ms", "-1").returncode == 0
    produce_old_records(kafka, topic_name, count=10)

    refused = rlm("disable", topic_name)

    assert refused.returncode == 1
    assert "partition 0 0..10: older than the retention" in refused.stderr
    assert overrides(kafka, topic_name) == LIFTED
    assert rlm.policies()[topic_name]["state"] == "ACTIVE"


def test_topic_disable_when_forced_then_gives_up_what_is_at_risk(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str
) -> None:
    kafka.create_topic(topic_name)
    assert rlm("set", topic_name, "--retention-ms", "-1").returncode == 0
    produce_old_records(kafka, topic_name, count=10)

    done = rlm("disable", topic_name, "--force", "--yes")

    assert done.returncode == 0, done.stderr
    assert overrides(kafka, topic_name) == {}


def test_uninstall_when_topics_are_tiered_then_all_have_their_retention_back(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str
) -> None:
    """R9: each with its old values; a topic with records at risk stays tiered unless forced."""
    safe, risky = f"{topic_name}-safe", f"{topic_name}-risky"
    kafka.create_topic(safe, config={"retention.ms": "86400000"})
    kafka.create_topic(risky)
    for topic in (safe, risky):
        assert rlm("set", topic, "--retention-ms", "-1").returncode == 0
    produce_old_records(kafka, risky, count=10)
    shown = rlm.run("uninstall", "--dry-run")

    refused = rlm.run("uninstall")

    before = {topic: overrides(kafka, topic) for topic in (safe, risky)}
    forced = rlm.run("uninstall", "--force", "--yes")
    assert "retention.ms=86400000" in shown.stdout
    assert "at risk: partition 0 0..10" in shown.stdout
    assert (refused.returncode, forced.returncode) == (1, 0)
    assert f"topics={risky}" in refused.stderr
    assert before == {safe: {"retention.ms": "86400000"}, risky: LIFTED}
    assert overrides(kafka, risky) == {}


def test_uninstall_when_patterns_have_policies_then_removes_them_first(
    rlm: Rlm, topic_name: str
) -> None:
    """Otherwise managers that still run would tier new topics that match."""
    assert rlm.run("policy", "set", f"{topic_name}-*", "--retention", "1d").returncode == 0

    shown = rlm.run("uninstall", "--dry-run")
    kept = json.loads(rlm.run("policy", "list", "--json").stdout)["levels"]
    done = rlm.run("uninstall")

    assert shown.stdout == f"policy {topic_name}-*: would be removed\n"
    assert kept == [{"pattern": f"{topic_name}-*", "settings": {"retention_ms": 86_400_000}}]
    assert done.returncode == 0, done.stderr
    assert json.loads(rlm.run("policy", "list", "--json").stdout)["levels"] == []


def test_uninstall_when_only_the_store_knows_a_topic_then_is_forced_to_restore_it(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str, tmp_path: Path
) -> None:
    """R9: the metadata topic is lost. Requires --force, because unstored data cannot be known."""
    kafka.create_topic(topic_name, config=LIFTED)
    storage = FilesystemChunkStorage(tmp_path)
    admin = admin_client(kafka.bootstrap_servers)
    described = admin.describe_topics(TopicCollection([topic_name]))[topic_name].result(10.0)
    topic_id = id_from_text(str(described.topic_id))
    StoredOriginals(storage, OriginalsKeys()).keep(
        OriginalSettings(
            topic=topic_name,
            topic_id=topic_id,
            values={"retention.ms": "86400000", "retention.bytes": None},
        )
    )
    storage.close()
    with rlm.config.open("a") as config:
        config.write(f"rsm.config.storage.filesystem.root={tmp_path}\n")

    refused = rlm.run("uninstall")
    before = overrides(kafka, topic_name)
    forced = rlm.run("uninstall", "--force", "--yes")

    assert refused.returncode == 1
    assert "retention.bytes=(no override), retention.ms=86400000" in refused.stderr
    assert before == LIFTED
    assert forced.returncode == 0, forced.stderr
    assert overrides(kafka, topic_name) == {"retention.ms": "86400000"}


def test_topic_disable_when_dry_run_then_shows_and_changes_nothing(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str
) -> None:
    kafka.create_topic(topic_name)
    assert rlm("set", topic_name).returncode == 0

    shown = rlm("disable", topic_name, "--dry-run")

    assert "retention.ms=(no override)" in shown.stdout
    assert "at risk: nothing" in shown.stdout
    assert overrides(kafka, topic_name) == LIFTED
    assert rlm.policies()[topic_name]["state"] == "ACTIVE"


def test_topic_set_when_reenabled_after_disabling_then_originals_are_the_present_ones(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str
) -> None:
    """Scenario 78, R9: the next disable restores what the user set after the first one."""
    kafka.create_topic(topic_name, config={"retention.ms": "86400000"})
    for command in ("set", "disable", "set"):
        assert rlm(command, topic_name).returncode == 0

    assert rlm.policies()[topic_name]["originals"] == {
        "retention.ms": "86400000",
        "retention.bytes": None,
    }
    assert overrides(kafka, topic_name) == LIFTED


def test_topic_list_when_there_is_no_metadata_topic_then_creates_none(
    kafka: KafkaCluster, rlm: Rlm
) -> None:
    assert rlm.policies() == {}

    topics = admin_client(kafka.bootstrap_servers).list_topics(timeout=10.0).topics
    assert rlm.metadata_topic not in topics


def test_topic_list_when_printed_for_people_then_holds_every_field_whole(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str
) -> None:
    kafka.create_topic(topic_name)
    assert rlm("set", topic_name).returncode == 0

    listed = rlm("list").stdout

    assert topic_name in listed
    assert "ACTIVE" in listed
    assert "retention.bytes=-" in listed


@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ({"cleanup.policy": "compact"}, "cleanup.policy=compact"),
        ({"cleanup.policy": "compact,delete"}, "cleanup.policy=compact,delete"),
    ],
)
def test_topic_set_when_topic_is_compacted_then_one_line_and_exit_2(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str, config: dict[str, str], rule: str
) -> None:
    """R9: refused topics."""
    kafka.create_topic(topic_name, config=config)

    refused = rlm("set", topic_name)

    assert refused.returncode == 2
    assert rule in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (
            ("--retention-ms", "60000", "--offload-segment-rollover", "61s"),
            ("max.offload.segment.rollover.time.ms=61000", "retention.ms=60000"),
        ),
        (
            ("--local-retention-ms", "60000", "--offload-segment-rollover", "61s"),
            ("max.offload.segment.rollover.time.ms=61000", "local.retention.ms=60000"),
        ),
        ((), ("max.message.bytes=9000000", "offload.stream.buffer.bytes=8388608")),
    ],
)
def test_topic_set_when_a_stream_cannot_keep_its_limits_then_refused_and_nothing_changes(
    kafka: KafkaCluster,
    rlm: Rlm,
    topic_name: str,
    options: tuple[str, ...],
    values: tuple[str, str],
) -> None:
    before = {"retention.ms": "86400000"}
    kafka.create_topic(topic_name, config={**before, "max.message.bytes": "9000000"})
    with rlm.config.open("a") as config:
        config.write(f"offload.stream.buffer.bytes={(64 if options else 8) << 20}\n")

    refused = rlm("set", topic_name, "--offload-mode", "stream", *options)

    assert refused.returncode == 2
    assert all(each in refused.stderr for each in values), refused.stderr
    assert overrides(kafka, topic_name) == before
    assert topic_name not in rlm.policies()


def test_topic_set_when_topic_does_not_exist_then_waits_no_longer_than_the_timeout(
    rlm: Rlm, topic_name: str
) -> None:
    assert rlm("list").returncode == 0  # the metadata topic exists, and a read of it is fast

    failed = rlm("set", topic_name, "--timeout", "10")

    assert failed.returncode == 1, failed.stderr
    assert topic_name in failed.stderr


def test_topic_commands_when_cluster_is_away_then_one_plain_line_and_exit_2() -> None:
    (port,) = free_ports(1)

    failed = subprocess.run(
        [*LIST, "--timeout", "1", "--bootstrap-server", f"127.0.0.1:{port}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert failed.returncode == 2
    assert failed.stderr.startswith("rlm: the cluster cannot be reached")
    assert failed.stderr.count("\n") == 1


def test_topic_list_when_only_the_address_is_given_then_reads_the_topic_as_it_is(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str, tmp_path: Path
) -> None:
    """The command reads a metadata topic whose partition count is not the default."""
    kafka.create_topic(topic_name)
    assert rlm("set", topic_name).returncode == 0
    client = tmp_path / "client.properties"
    client.write_text(f"rlmm.config.remote.log.metadata.topic.name={rlm.metadata_topic}\n")

    address = ("--bootstrap-server", kafka.bootstrap_servers)

    listed = subprocess.run(
        [*LIST, "--json", *address, "--command-config", str(client)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert [each["topic"] for each in json.loads(listed.stdout)["topics"]] == [topic_name]


def test_topic_when_enabled_altered_and_described_then_each_command_does_only_its_own(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str
) -> None:
    kafka.create_topic(topic_name, config={"retention.ms": "86400000"})

    early = rlm("alter", topic_name, "--retention-ms", "-1")
    enabled = rlm("enable", topic_name, "--local-retention-ms", "3600000")
    again = rlm("enable", topic_name)
    altered = rlm("alter", topic_name, "--local-deletion-lag-ms", "5000")
    described = json.loads(rlm("describe", topic_name, "--json").stdout)

    assert (early.returncode, again.returncode) == (2, 2)
    assert "Tier it with `rlm topic enable`" in early.stderr
    assert "Change its policy with `rlm topic alter`" in again.stderr
    assert (enabled.returncode, altered.returncode) == (0, 0), enabled.stderr + altered.stderr
    found = {each["name"]: (each["value"], each["origin"]) for each in described["settings"]}
    assert described["state"] == "ACTIVE"
    assert described["originals"] == {"retention.ms": "86400000", "retention.bytes": None}
    assert found["local.retention.ms"] == (3600000, "topic")
    assert found["local.retention.bytes"] == (-1, "retention.bytes")
    assert found["local.deletion.lag.ms"] == (5000, "topic")
    assert found["remote.local.trim.min.age.ms"] == (900000, "managers")


def overrides(kafka: KafkaCluster, topic: str) -> dict[str, str]:
    resource = ConfigResource("topic", topic)
    admin = admin_client(kafka.bootstrap_servers)
    found = admin.describe_configs([resource])[resource].result(30.0)
    return {
        name: entry.value
        for name, entry in found.items()
        if name.startswith("retention.") and entry.source == DYNAMIC_TOPIC_CONFIG
    }


def produce_old_records(kafka: KafkaCluster, topic: str, *, count: int) -> None:
    """Produce records with timestamps of January 1, 2001."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, value=b"%d" % number, partition=0, timestamp=978_307_200_000)
    assert producer.flush(30.0) == 0


@pytest.mark.parametrize("command", ["set", "disable"])
def test_topic_command_when_there_is_no_such_topic_then_says_so_before_the_timeout(
    rlm: Rlm, command: str
) -> None:
    done = rlm(command, "never-was", "--timeout", "300")

    assert done.returncode == 1
    assert done.stderr.startswith(
        "rlm: cannot find the topic: the cluster has no topic of this name (topic=never-was)."
    )
    assert done.stderr.count("\n") == 1
