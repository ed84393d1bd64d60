"""Creates files that each start of a broker reuses; make runs this after it has copied the jars.

The checkpoint of a formatted directory saves a JVM for each broker. The archive of loaded classes
saves more than half of a broker's start. An argument selects a version of Kafka, by default the
newest.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.services.kafka import KafkaCluster
from tests.services.kafka_runtime import KafkaRelease, new_id, run_tool
from tests.services.kafka_versions import NEWEST_VERSION, release_of

_SERVER_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
log.dirs={log_dir}
"""


def main(version: str) -> None:
    """Create the missing files of a version."""
    release = release_of(version)
    if not release.needs_zookeeper and not release.bootstrap_checkpoint.exists():
        _format(release)
    if not release.class_archive.exists():
        _archive_classes(release)


def _format(release: KafkaRelease) -> None:
    checkpoint = release.bootstrap_checkpoint
    with tempfile.TemporaryDirectory(dir=release.home) as scratch:
        properties = Path(scratch) / "server.properties"
        log_dir = Path(scratch) / "log"
        properties.write_text(_SERVER_PROPERTIES.format(log_dir=log_dir))
        arguments = ("format", "-t", new_id(), "-c", str(properties))
        run_tool("kafka.tools.StorageTool", *arguments, release=release)
        (log_dir / checkpoint.name).rename(checkpoint)


def _archive_classes(release: KafkaRelease) -> None:
    # A broker that serves one topic has loaded the classes that every start loads.
    with tempfile.TemporaryDirectory(dir=release.home) as scratch:
        archive = Path(scratch) / release.class_archive.name
        flags = (f"-XX:ArchiveClassesAtExit={archive}",)
        directory = Path(scratch) / "cluster"
        with KafkaCluster(directory, jvm_flags=flags, release=release) as cluster:
            cluster.create_topic("any")
        archive.rename(release.class_archive)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else NEWEST_VERSION)
