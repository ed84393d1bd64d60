"""Three brokers, three hosts, producers, and faults: `make chaos MINUTES=10`.

Kills and freezes brokers and hosts, and makes the store fail, one after the other, while producers
write and a witness reads the brokers. One topic is copied by segments, the other one is streamed.
Then it reads all records through the gateways, scrubs the store and prints the findings. The exit
code is 1 if anything was lost, came twice, or is left over.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # re-exported without __all__

from rlm.worker.store_access import open_chunk_storage
from rlmm.events.policy import topic_policies
from rsm.segment.ids import TopicIdPartition
from tests.chaos.faults import Faults
from tests.chaos.hosts import TRIM_MIN_AGE_MS, ChaosHosts
from tests.chaos.log_reading import LogReader, Partition, Witness
from tests.chaos.outcome import ChaosOutcome, Readings, check_readings
from tests.chaos.scrub import Scrubbed, scrub
from tests.chaos.writers import Ledger, TransactionalWriter, Writer
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.waiting import wait_until

_PARTITIONS = 2
_TOPICS = {"plain": Writer, "transactions": TransactionalWriter}
_STREAMED = "transactions"
_CHECKED: tuple[Partition, ...] = tuple((t, p) for t in _TOPICS for p in range(_PARTITIONS))
_READ_DEADLINE_S = 180.0
_REST_DEADLINE_S = 120.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, help="end once each fault occurred ROUNDS times")
    parser.add_argument("--seed", type=int, default=1, help="decides which brokers fail")
    parser.add_argument("--json", action="store_true", help="print nothing but one line of JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        outcome = _run(Path(name), options)
    found = {**asdict(outcome), "is_good": outcome.is_good}
    if options.json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        sys.stdout.writelines(f"{key:22} {value}\n" for key, value in found.items())
    return 0 if outcome.is_good else 1


def _run(directory: Path, options: argparse.Namespace) -> ChaosOutcome:
    properties = {"auto.leader.rebalance.enable": "false", "broker.session.timeout.ms": "2000"}
    cluster = KafkaCluster(directory / "kafka", brokers=3, properties=properties)
    with cluster:
        hosts = ChaosHosts(directory / "hosts", cluster)
        try:
            hosts.start()
            return _run_with(cluster, hosts, options)
        finally:
            hosts.stop()


def _run_with(
    cluster: KafkaCluster, hosts: ChaosHosts, options: argparse.Namespace
) -> ChaosOutcome:
    started = time.monotonic()
    _create_topics(cluster, hosts)
    ledger = Ledger()
    direct = cluster.bootstrap_servers
    witnesses = [Witness(LogReader(direct, _CHECKED, is_committed=c)) for c in (False, True)]
    writers = [
        kind(
            direct,
            tuple(partition for partition in _CHECKED if partition[0] == topic),
            ledger,
        )
        for topic, kind in _TOPICS.items()
    ]
    for writer in writers:
        writer.start()
    faults = Faults(cluster, hosts, seed=options.seed)
    faults.run(60.0 * options.minutes, max_rounds=options.rounds)
    for writer in writers:
        writer.finish()
    cluster.restore_leaders()
    witnessed = _finish(witnesses)
    _wait_at_rest(cluster)
    scrubbed = _scrub(hosts)
    local_starts = _local_starts(cluster)
    return check_readings(
        seconds=int(time.monotonic() - started),
        faults=faults.injected,
        ledger=ledger,
        witnessed=witnessed,
        read=_read(hosts.bootstrap_servers),
        local_starts=local_starts,
        scrubbed=scrubbed,
    )


def _create_topics(cluster: KafkaCluster, hosts: ChaosHosts) -> None:
    config = {"segment.bytes": str(1 << 20), "retention.ms": "-1", "min.insync.replicas": "2"}
    streamed = ("--offload-mode", "stream", "--offload-segment-rollover-ms", "2000")
    for topic in _TOPICS:
        cluster.create_topic(topic, partitions=_PARTITIONS, replication_factor=3, config=config)
        offload = streamed if topic == _STREAMED else ()
        hosts.any_host.rlm("topic", "set", topic, "--local-retention-ms", "0", *offload)


def _finish(witnesses: list[Witness]) -> Readings:
    everything, committed = (witness.finish() for witness in witnesses)
    for reader in (everything, committed):
        reader.read_to(reader.end_offsets(), deadline_s=_READ_DEADLINE_S)
        reader.close()
    return Readings(everything=everything.logs, committed=committed.logs)


def _read(bootstrap_servers: str) -> Readings:
    """Read all records through gateways."""
    logs = []
    for is_committed in (False, True):
        reader = LogReader(bootstrap_servers, _CHECKED, is_committed=is_committed)
        reader.read_to(reader.end_offsets(), deadline_s=_READ_DEADLINE_S)
        reader.close()
        logs.append(reader.logs)
    return Readings(everything=logs[0], committed=logs[1])


def _wait_at_rest(cluster: KafkaCluster) -> None:
    """Wait until every partition is trimmed, and none has changed for a while."""
    seen: list[Mapping[Partition, int]] = []

    def at_rest() -> bool:
        seen.append(_local_starts(cluster))
        last = seen[-8:]
        return len(last) == 8 and all(each == last[0] for each in last) and all(last[0].values())

    wait_until(at_rest, _REST_DEADLINE_S, lambda: f"local starts {seen[-1]}", interval_s=1.0)


def _local_starts(cluster: KafkaCluster) -> Mapping[Partition, int]:
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # ships untyped
    admin = admin_client(cluster.bootstrap_servers)
    futures = admin.list_offsets({TopicPartition(*partition): earliest for partition in _CHECKED})
    return {(e.topic, e.partition): f.result(30.0).offset for e, f in futures.items()}


def _scrub(hosts: ChaosHosts) -> Scrubbed:
    host = hosts.any_host
    storage = open_chunk_storage(host.config.storage)
    with host.metadata() as metadata:
        ids = {policy.topic: policy.topic_id for policy in topic_policies(metadata)}
        return scrub(
            metadata,
            storage,
            [TopicIdPartition(topic_id=ids[t], topic=t, partition=p) for t, p in _CHECKED],
            orphan_before_ms=int(time.time() * 1_000) - TRIM_MIN_AGE_MS,
        )


if __name__ == "__main__":
    raise SystemExit(main())
