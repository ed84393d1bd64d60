"""`rlm read` and `rlm status` with a real broker whose log is stored and trimmed.

The store has the layout `block_v1`, in blocks that are smaller than some batches. Readers
see no difference.
"""

from __future__ import annotations

import base64
import json
import random
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer

from rsm.layout.block_v1.block_index import decode_index
from rsm.storage.filesystem.sidecar import sidecar_path
from tests.services.kafka import KafkaCluster
from tests.services.rlm_run import RLM, RlmRun
from tests.services.waiting import wait_until

TOPIC = "read-and-status"
BASE_MS = 1_700_000_000_000
TRANSACTION_COUNT = 60
RECORDS_PER_TRANSACTION = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """One record as it was produced, and whether its transaction was committed."""

    timestamp_ms: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes | None], ...]
    committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiered:
    """A topic whose older part is in the store only."""

    run: RlmRun
    cluster: KafkaCluster
    produced: Mapping[int, Produced]

    @property
    def end_offset(self) -> int:
        """The offset after the last marker: each transaction has one."""
        return len(self.produced) + TRANSACTION_COUNT

    def rlm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return rlm(*arguments, "--config", str(self.run.configuration))

    def rows(self, *arguments: str, partition: int = 0) -> Sequence[Mapping[str, Any]]:
        done = self.rlm("read", f"{TOPIC}:{partition}", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def status(self) -> Sequence[Mapping[str, Any]]:
        done = self.rlm("status", TOPIC, "--json")
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)["partitions"]
        assert isinstance(rows, list)
        return rows


def log_bytes(index: Path) -> int:
    """Return the number of log bytes in a stored segment, by its index object."""
    return decode_index(index.read_bytes(), name=index.name).metadata.length_bytes


def rlm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [RLM, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def tiered(kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiered]:
    # The records have old timestamps; neither broker nor manager may delete them for that.
    config = {"segment.bytes": str(1 << 20), "retention.ms": "-1"}
    kafka.create_topic(TOPIC, partitions=2, config=config)
    settings = {
        "rlmm.config.remote.log.metadata.topic.name": "__read_and_status",
        "process.heartbeat.interval.ms": "500",
        "rsm.config.layout": "block_v1",
        "rsm.config.block.size": "65536",
    }
    run = RlmRun(tmp_path_factory.mktemp("host"), kafka, settings=settings)
    run.start()
    try:
        produced = produce_transactions(kafka)
        produce_plainly(kafka)
        world = Tiered(run=run, cluster=kafka, produced=produced)
        done = world.rlm("topic", "set", TOPIC, "--local-retention-bytes", "1")
        assert done.returncode == 0, done.stderr
        wait_until(lambda: all(map(is_trimmed, world.status())), 60.0, run.log_tail, interval_s=0.5)
        yield world
    finally:
        run.stop()


def is_trimmed(row: Mapping[str, Any]) -> bool:
    settled = row["lag_segments"] == 0 and row["remote_segments"] > 2
    return settled and int(row["local_start_offset"]) > 1000


def produce_transactions(cluster: KafkaCluster) -> Mapping[int, Produced]:
    """Write some 8 MB to partition 0, every fourth transaction aborted, with several codecs."""
    producers = [
        Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "transactional.id": f"{TOPIC}-{codec}",
                "compression.type": codec,
            }
        )
        for codec in ("none", "zstd", "lz4")
    ]
    for producer in producers:
        producer.init_transactions(30)
    produced: dict[int, Produced] = {}
    for number in range(TRANSACTION_COUNT):
        producer = producers[number % len(producers)]
        committed = number % 4 != 1
        producer.begin_transaction()
        for index in range(RECORDS_PER_TRANSACTION):
            record = record_of(number * RECORDS_PER_TRANSACTION + index, committed=committed)
            producer.produce(
                TOPIC,
                partition=0,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp=record.timestamp_ms,
                on_delivery=partial(note_offset, produced, record),
            )
        producer.flush(30)
        if committed:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    return produced


def note_offset(
    produced: dict[int, Produced], record: Produced, error: KafkaError | None, message: Message
) -> None:
    """Note a record's offset, which depends on the markers that the broker writes."""
    offset = message.offset()
    assert error is None
    assert offset is not None
    produced[offset] = record


def produce_plainly(cluster: KafkaCluster) -> None:
    """Write the same records to partition 1, where each record's offset is its number."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5})
    for number in range(TRANSACTION_COUNT * RECORDS_PER_TRANSACTION):
        record = record_of(number, committed=True)
        producer.produce(TOPIC, partition=1, value=record.value, timestamp=record.timestamp_ms)
    producer.flush(30)


def record_of(number: int, *, committed: bool) -> Produced:
    body = random.Random(number).randbytes(1700)
    return Produced(
        timestamp_ms=BASE_MS + number,
        key=None if number % 7 == 0 else b"key-%d" % number,
        value=body if number % 2 else body.hex().encode(),
        headers=(("n", b"%d" % number), ("none", None)) if number % 3 == 0 else (),
        committed=committed,
    )


def produced_of(row: Mapping[str, Any], *, committed: bool) -> Produced:
    headers = tuple((h[0], None if h[1] is None else h[1].encode()) for h in row["headers"])
    encoded = row.get("value_base64")
    return Produced(
        timestamp_ms=row["timestamp_ms"],
        key=None if row["key"] is None else row["key"].encode(),
        value=row["value"].encode() if encoded is None else base64.b64decode(encoded),
        headers=headers,
        committed=committed,
    )


def test_objects_when_a_manager_stored_them_then_say_its_version_and_cluster(
    tiered: Tiered,
) -> None:
    """The user metadata that PIP-17 gives a ledger's objects."""
    indexes = list(tiered.run.store.rglob("*-index"))
    assert indexes
    for index in indexes:
        attributes = json.loads(sidecar_path(index).read_bytes())
        software = attributes["s3managedledgeroffloadersoftwareversion"]
        assert software == f"kafka-rlm/{version('kafka-rlm')}"
        assert attributes["kafkaclusterid"] == tiered.cluster.cluster_id


def test_read_when_older_part_is_stored_only_then_every_record_once_in_order(
    tiered: Tiered,
) -> None:
    """Scenario 41 (with `rlm read`): from offset 0 across both tiers, every record as produced."""
    rows = tiered.rows()

    assert [row["offset"] for row in rows] == sorted(tiered.produced)
    for row in rows:
        expected = tiered.produced[row["offset"]]
        assert produced_of(row, committed=expected.committed) == expected
    tiers = [row["tier"] for row in rows]
    assert tiers == sorted(tiers, reverse=True)
    assert set(tiers) == {"remote", "local"}


def test_blocks_when_segments_are_stored_as_ledgers_then_every_batch_is_an_entry(
    tiered: Tiered,
) -> None:
    indexes = sorted(tiered.run.store.rglob("*-ledger-*-index"))
    pairs = [(index.with_name(index.name.removesuffix("-index")), index) for index in indexes]

    done = rlm("blocks", "cat", *map(str, pairs[0]))

    assert len(pairs) > 4
    assert not list(tiered.run.store.rglob("*.log"))
    assert (done.returncode, done.stderr) == (0, "")
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    assert [entry["entry_id"] for entry in entries] == list(range(len(entries)))


def test_read_when_committed_then_aborted_records_of_both_tiers_are_left_out(
    tiered: Tiered,
) -> None:
    """Scenarios 50 and 51: also a transaction that is aborted where the other tier begins."""
    rows = tiered.rows("--isolation-level", "read_committed")

    committed = [offset for offset, record in tiered.produced.items() if record.committed]
    assert [row["offset"] for row in rows] == committed


@pytest.mark.parametrize(("begin", "end"), [(120, 130), (0, 1), (3000, 3050)])
def test_read_when_bounded_then_those_records(tiered: Tiered, begin: int, end: int) -> None:
    rows = tiered.rows("--from", str(begin), "--to", str(end))

    assert [row["offset"] for row in rows] == [o for o in range(begin, end) if o in tiered.produced]


def test_read_when_from_times_of_either_tier_then_first_record_not_older(tiered: Tiered) -> None:
    """Scenario 42: a time is found in the store and in the broker's log."""
    bounds = ("--from", "2023-11-14T22:13:20.075Z", "--to", f"@{BASE_MS + 78}")

    early = tiered.rows(*bounds, partition=1)
    late = tiered.rows("--from", f"@{BASE_MS + 2998}", partition=1)

    assert [row["offset"] for row in (*early, *late)] == [75, 76, 77, 2998, 2999]
    assert [row["tier"] for row in (*early, *late)] == ["remote"] * 3 + ["local"] * 2


def test_read_when_above_the_end_then_one_line_and_exit_code_1(tiered: Tiered) -> None:
    """Scenario 47."""
    done = tiered.rlm("read", f"{TOPIC}:0", "--from", str(tiered.end_offset + 1))

    assert (done.returncode, done.stdout) == (1, "")
    assert "the log does not contain the offset" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        ("read", "no-such-topic:0"),
        ("status", "no-such-topic:0"),
        ("dlq", "list", "no-such-topic"),
        ("dlq", "retry", "no-such-topic", "--yes"),
    ],
)
def test_command_when_topic_is_unknown_then_one_line_and_exit_code_1(
    tiered: Tiered, command: tuple[str, ...]
) -> None:
    done = tiered.rlm(*command)

    assert done.returncode == 1
    assert done.stderr.startswith(
        "rlm: cannot find the topic: the cluster has no topic of this name (topic=no-such-topic)."
    )
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [("read", "orders:0"), ("status",)])
def test_command_when_cluster_is_unreachable_then_one_line_and_exit_code_2(
    command: tuple[str, ...],
) -> None:
    done = rlm(*command, "--bootstrap-server", "127.0.0.1:1", "--timeout", "1")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rlm: the cluster cannot be reached")
    assert done.stderr.count("\n") == 1


def test_read_when_nobody_reads_on_then_ends_quietly(tiered: Tiered) -> None:
    command = f"{RLM} read {TOPIC}:0 --config {tiered.run.configuration} | head -n 1"

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("0  2023-11-14T22:13:20.000Z  remote  null")


def test_read_when_interrupted_then_ends_at_once_without_a_trace(tiered: Tiered) -> None:
    """A user's Ctrl-C while the output is blocked."""
    command = [RLM, "read", f"{TOPIC}:0", "--config", str(tiered.run.configuration)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)

        process.send_signal(signal.SIGINT)

        stderr = process.stderr.read()
        assert (process.wait(10), stderr) == (130, b"")


def test_read_when_store_is_not_configured_then_names_the_setting(
    tiered: Tiered, tmp_path: Path
) -> None:
    client = tmp_path / "client.properties"
    client.write_text("rlmm.config.remote.log.metadata.topic.name=__read_and_status\n")

    done = rlm(
        "read",
        f"{TOPIC}:0",
        "--bootstrap-server",
        tiered.cluster.bootstrap_servers,
        "--command-config",
        str(client),
    )

    assert done.returncode == 2
    assert "rsm.config.storage" in done.stderr


def test_status_when_all_answer_then_the_numbers_agree(tiered: Tiered) -> None:
    row = tiered.status()[0]

    indexes = [each for each in tiered.run.store.rglob("0/*-index") if f"/{TOPIC}-" in str(each)]
    assert (row["topic"], row["partition"], row["role"]) == (TOPIC, 0, "leader")
    assert row["log_start_offset"] == 0
    assert row["high_watermark"] == row["last_stable_offset"] == tiered.end_offset
    assert 0 < row["local_start_offset"] <= row["last_tiered_offset"]
    assert row["pending_upload_offset"] == row["last_tiered_offset"] + 1
    assert (row["remote_segments"], row["lag_bytes"]) == (len(indexes), 0)
    assert row["remote_bytes"] == sum(map(log_bytes, indexes))


def test_status_when_for_people_then_totals_and_a_line_per_partition(tiered: Tiered) -> None:
    done = tiered.rlm("status")

    first, *_ = lines = done.stdout.splitlines()
    table = lines.index("1 topic, 2 partitions")
    rows = [line.split() for line in lines if line.startswith(f"{TOPIC}:")]
    assert "problem" in first
    assert table < lines.index(next(line for line in lines if line.startswith("partition ")))
    assert [row[0] for row in rows if row[-1] in {"ok", "PROBLEM"}] == [f"{TOPIC}:0", f"{TOPIC}:1"]


def test_status_when_wide_then_all_columns_of_each_partition(tiered: Tiered) -> None:
    done = tiered.rlm("status", "--wide")

    header, *lines = done.stdout.splitlines()
    assert header.startswith("topic")
    assert [line.split()[:4] for line in lines] == [
        [TOPIC, "0", "ACTIVE", "leader"],
        [TOPIC, "1", "ACTIVE", "leader"],
    ]
