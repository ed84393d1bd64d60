"""Measures audits of generated segments, with a generated listing and with a real S3 server.

Each audit runs in its own process, so that no other memory is measured. The command
`python -m bench.spark.auditing JSON` prints the figures as one JSON object.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from bench.measurement import Measurement, of_runs
from bench.metadata import catalogue
from bench.metadata.topic import fill_topic
from bench.spark.generated_store import GeneratedStore
from bench.spark.session import bench_session
from rlmm.codec import encode
from rlmm.events.claim import LeadershipClaimed
from rlmm.partitioner import event_partition
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import Writer
from rsm.system_clock import SystemClock
from spark_tools.audit.job import Audit, AuditSettings, open_metadata
from spark_tools.connection import ClusterConnection
from tests.services.kafka import KafkaCluster
from tests.services.s3 import S3Server

_CHECKOUT = Path(__file__).resolve().parents[2]
_TIMEOUT_MS = 60_000
_OBJECTS_PER_SEGMENT = 2
_BUCKET = "audited"
_MIB = 1 << 20
_SHOWN = 10

Figures = Mapping[str, float]


def measure_auditing(cluster: KafkaCluster, sizes: Sequence[int]) -> list[Measurement]:
    """Audit each number of segments on two cores, and the smallest number also on one core."""
    measurements: list[Measurement] = []
    for segments in sizes:
        topic = prepare(cluster, segments)
        for cores in (1, 2) if segments == min(sizes) else (2,):
            figures = _audited(
                segments=segments, cores=cores, topic=topic, servers=cluster.bootstrap_servers
            )
            measurements += _measurements(f"{segments} segments, {cores} cores", segments, figures)
    return measurements


def measure_real_store(cluster: KafkaCluster, server: S3Server, objects: int) -> list[Measurement]:
    """Audit a real S3 server with `objects` objects, none of which is missing."""
    segments = objects // _OBJECTS_PER_SEGMENT
    topic = prepare(cluster, segments)
    put_objects(server, segments)
    figures = _audited(
        segments=segments,
        cores=2,
        topic=topic,
        servers=cluster.bootstrap_servers,
        endpoint=server.url,
    )
    return _measurements(f"{objects} objects of an S3 server", segments, figures)


def prepare(cluster: KafkaCluster, segments: int) -> str:
    """Fill a metadata topic with records of `segments` segments; return its name."""
    topic = f"audited-{segments}"
    fill_topic(cluster, topic, segments)
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True}
    )
    for number in range(min(segments, catalogue.PARTITIONS)):
        claim = LeadershipClaimed(
            event_id=uuid4(),
            topic_id_partition=catalogue.user_partition(number),
            writer=Writer(broker_id=1, leader_epoch=catalogue.LEADER_EPOCH, incarnation=uuid4()),
            lineage=Lineage.of((catalogue.LEADER_EPOCH, 0)),
        )
        record = encode(claim)
        partition = event_partition(claim, catalogue.METADATA_PARTITIONS)
        producer.produce(topic, record.value, record.key, partition=partition)
    if producer.flush(_TIMEOUT_MS / 1000):
        raise RuntimeError(
            "cannot fill the topic: the broker did not acknowledge all records in time"
        )
    return topic


def put_objects(server: S3Server, segments: int) -> None:
    """Create the objects of `segments` segments in a bucket, as sparse files of the server."""
    server.create_bucket(_BUCKET)
    directory = server.bucket_directory(_BUCKET)
    for number in range(segments):
        tip = catalogue.user_partition(number)
        location = directory / "tiered" / tip.topic / str(tip.partition)
        location.mkdir(parents=True, exist_ok=True)
        for suffix in ("log", "meta"):
            path = location / f"{catalogue.start_offset(number):020}.{suffix}"
            path.touch()
            os.truncate(path, catalogue.SEGMENT_BYTES)


def _audited(**arguments: object) -> Figures:
    done = subprocess.run(
        [sys.executable, "-m", "bench.spark.auditing", json.dumps(arguments)],
        cwd=_CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(_CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _measurements(name: str, segments: int, figures: Figures) -> list[Measurement]:
    rate = segments / figures["seconds"]
    return [
        of_runs(f"audit of {name}", [figures["seconds"]], unit="s"),
        of_runs(f"segments audited: {name}", [rate], unit="/s"),
        of_runs(f"driver's memory: {name}", [figures["memory_mib"]], unit="MiB"),
    ]


def audit(
    spark: SparkSession, *, segments: int, topic: str, servers: str, endpoint: str = ""
) -> Figures:
    """Audit the store; return the seconds, and the peak memory of this process.

    Raises RuntimeError for unexpected findings.
    """
    options = {
        "bootstrap.servers": servers,
        "rlmm.config.remote.log.metadata.topic.name": topic,
        "rsm.config.key.prefix": "tiered",
        "rsm.config.storage.backend": "s3",
        "rsm.config.storage.s3.bucket.name": _BUCKET,
        "rsm.config.storage.s3.endpoint.url": endpoint or "http://127.0.0.1:1",
        "rsm.config.storage.s3.region": "us-east-1",
        "rsm.config.storage.s3.path.style.access.enabled": "true",
    }
    connection = ClusterConnection.of(options)
    open_it = partial(open_metadata, connection, timeout_ms=_TIMEOUT_MS)
    settings = AuditSettings(grace_ms=0, objects_per_range=20_000, verify_checksums=False)
    store = connection.store if endpoint else GeneratedStore.of(segments, connection.store)
    spark.range(1).count()  # This starts Spark before the measurement.
    start = time.monotonic()
    result = Audit(spark, store, open_it, settings, SystemClock()).run()
    seconds = time.monotonic() - start
    found = Counter(each.kind for each in result.settled.findings)
    expected = {} if endpoint else {"missing": _OBJECTS_PER_SEGMENT, "foreign": 1}
    if found != expected:
        some = [each.object_key for each in result.settled.findings[:_SHOWN]]
        raise RuntimeError(
            f"cannot measure the audit: it found {dict(found)}, expected {expected}; first {some}"
        )
    return {"seconds": seconds, "memory_mib": _peak_resident_bytes() / _MIB}


def _peak_resident_bytes() -> int:
    """Return the peak memory of this process. getrusage would include its parent's."""
    status = Path("/proc/self/status").read_text()
    (line,) = [each for each in status.splitlines() if each.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def main() -> int:
    """Run the audit that the command line describes, and print its figures."""
    arguments = json.loads(sys.argv[1])
    with (
        TemporaryDirectory(prefix="bench-") as scratch,
        bench_session(Path(scratch), arguments.pop("cores")) as spark,
    ):
        print(json.dumps(audit(spark, **arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
