"""`rlm metadata` against a real broker, as a user types it."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess, run
from uuid import UUID

import pytest
from confluent_kafka import Producer

from rlmm.codec import encode
from rlmm.native.records import NATIVE_TOPIC
from rlmm.topic.kafka import KafkaTopic
from rlmm.topic.shape import TopicSettings
from rsm.segment.ids import TopicIdPartition
from tests import metadata_builder as build
from tests.integration.rlmm.ensured_topic import ensured
from tests.services.kafka import KafkaCluster
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_METADATA = (sys.executable, "-m", "rlm", "metadata")
# A partition's deletion, as Kafka 4 writes it: topic "orders", partition 7, broker 1, at 5 ms.
_NATIVE = bytes.fromhex("010200076f7264657273" + "00" * 15 + "09" + "0000000700" + "00000001")
_NATIVE += bytes.fromhex("0000000000000005" + "01" + "00")

_PAYMENTS = TopicIdPartition(topic_id=UUID(int=0x9A19), topic="payments", partition=0)


@pytest.fixture
def config(kafka: KafkaCluster, topic_name: str, tmp_path: Path) -> Path:
    path = tmp_path / "rlm.properties"
    path.write_text(
        f"bootstrap.servers={kafka.bootstrap_servers}\n"
        f"rlmm.config.remote.log.metadata.topic.name={topic_name}\n"
    )
    return path


@pytest.fixture
def topic(kafka: KafkaCluster, topic_name: str) -> Iterator[KafkaTopic]:
    settings = TopicSettings(name=topic_name, partition_count=2, replication_factor=1)
    topic = KafkaTopic({"bootstrap.servers": kafka.bootstrap_servers}, settings)
    ensured(topic)
    yield topic
    topic.close()


def _rlm(*arguments: str) -> CompletedProcess[str]:
    return run([*_METADATA, *arguments], capture_output=True, text=True, timeout=60, check=False)


def _publish(
    topic: KafkaTopic, *, partition: int = 0, about: TopicIdPartition = build.ORDERS
) -> int:
    """Write the four events of a segment and a tombstone; return the number of records."""
    events = build.life(build.segment_metadata(1, partition=about))
    records = [encode(event) for event in events]
    for record in records:
        topic.publish(partition, record.key, record.value)
    topic.publish(partition, records[0].key, None)
    return len(records) + 1


def test_metadata_dump_when_records_are_there_then_prints_each(
    topic: KafkaTopic, config: Path
) -> None:
    count = _publish(topic)

    done = _rlm("dump", "--config", str(config), "--json")

    assert done.returncode == 0, done.stderr
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["MetadataOffset"] for each in documents] == list(range(count))
    assert documents[0]["RemoteLogSegmentState"] == "COPY_SEGMENT_STARTED"
    assert documents[-1]["Type"] == "Tombstone"


def test_metadata_dump_when_of_another_topic_then_prints_nothing(
    topic: KafkaTopic, config: Path
) -> None:
    _publish(topic)

    done = _rlm("dump", "--config", str(config), "--topic", "payments")

    assert (done.returncode, done.stdout) == (0, "")


def test_metadata_dump_when_there_is_no_topic_then_says_so(config: Path) -> None:
    done = _rlm("dump", "--config", str(config))

    assert done.returncode == 1
    assert "the topic does not exist" in done.stderr


def test_metadata_tail_when_records_come_then_prints_them_until_interrupted(
    topic: KafkaTopic, config: Path, tmp_path: Path
) -> None:
    _publish(topic, partition=1)
    command = [*_METADATA, "tail", "--config", str(config), "--json"]
    tail = ServiceProcess(command, log_path=tmp_path / "tail.log")

    def follows() -> bool:
        _publish(topic)
        return "RemoteLogSegmentMetadata" in tail.log_path.read_text()

    wait_until(follows, 30.0, tail.log_tail, interval_s=0.5)
    code = tail.interrupt()

    documents = [json.loads(line) for line in tail.log_path.read_text().splitlines()]
    assert code == 128 + signal.SIGINT
    assert {each["MetadataPartition"] for each in documents} == {0}


def test_metadata_tail_when_of_one_topic_then_prints_nothing_of_another(
    topic: KafkaTopic, config: Path, tmp_path: Path
) -> None:
    command = [*_METADATA, "tail", "--config", str(config), "--topic", "payments", "--json"]
    tail = ServiceProcess(command, log_path=tmp_path / "tail.log")

    def follows() -> bool:
        _publish(topic)
        _publish(topic, about=_PAYMENTS)
        return "Tombstone" in tail.log_path.read_text()

    wait_until(follows, 30.0, tail.log_tail, interval_s=0.5)
    tail.interrupt()

    documents = [json.loads(line) for line in tail.log_path.read_text().splitlines()]
    segments = [each["RemoteLogSegmentId"] for each in documents if each["Type"] != "Tombstone"]
    subjects = [each["Subject"] for each in documents if each["Type"] == "Tombstone"]
    assert {each["TopicIdPartition"]["Name"] for each in segments} == {"payments"}
    assert all(subject.startswith(_PAYMENTS.topic_id.hex) for subject in subjects)


@pytest.fixture(scope="module")
def native_records(kafka: KafkaCluster) -> None:
    """A deletion, an unknown record and a tombstone in the topic of Kafka's own tiered storage."""
    kafka.create_topic(NATIVE_TOPIC)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for value in (_NATIVE, b"not one", None):
        producer.produce(NATIVE_TOPIC, value=value)
    assert producer.flush(30) == 0


@pytest.mark.usefixtures("native_records")
def test_metadata_dump_when_native_then_reads_the_topic_of_kafka_itself(config: Path) -> None:
    done = _rlm("dump", "--config", str(config), "--native", "--json")

    assert done.returncode == 0, done.stderr
    deletion, tombstone = (json.loads(line) for line in done.stdout.splitlines())
    assert deletion["RemotePartitionDeleteState"] == "DELETE_PARTITION_STARTED"
    assert deletion["TopicIdPartition"]["Name"] == "orders"
    assert tombstone["Type"] == "Tombstone"
    assert "skipped record 0:1" in done.stderr


@pytest.mark.usefixtures("native_records")
@pytest.mark.parametrize(("topic", "count"), [("orders", 1), ("payments", 0)])
def test_metadata_audit_native_when_a_deletion_never_ended_then_reports_it(
    topic: str, count: int, config: Path
) -> None:
    done = _rlm(
        *("audit-native", "--config", str(config), "--json", "--grace-ms", "0", "--topic", topic)
    )

    assert done.returncode == 0, done.stderr
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["Type"] for each in documents] == ["dangling_partition_delete"] * count
    assert f"segments checked: 0, findings: {count}\n" in done.stderr
