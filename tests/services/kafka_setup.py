"""Creates files that each start of a broker reuses; `make setup` runs it after copying the jars.

A formatted directory's checkpoint saves a JVM per broker, the archive of loaded classes more than
half of a broker's start.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.services.kafka import KafkaCluster
from tests.services.kafka_runtime import (
    BOOTSTRAP_CHECKPOINT,
    CLASS_ARCHIVE,
    HOME,
    new_id,
    run_tool,
)

_SERVER_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
log.dirs={log_dir}
"""


def main() -> None:
    """Create what is missing."""
    if not BOOTSTRAP_CHECKPOINT.exists():
        _format()
    if not CLASS_ARCHIVE.exists():
        _archive_classes()


def _format() -> None:
    with tempfile.TemporaryDirectory(dir=HOME) as scratch:
        properties = Path(scratch) / "server.properties"
        log_dir = Path(scratch) / "log"
        properties.write_text(_SERVER_PROPERTIES.format(log_dir=log_dir))
        run_tool("kafka.tools.StorageTool", "format", "-t", new_id(), "-c", str(properties))
        (log_dir / BOOTSTRAP_CHECKPOINT.name).rename(BOOTSTRAP_CHECKPOINT)


def _archive_classes() -> None:
    # The classes of a broker that serves one topic are those that every start loads.
    with tempfile.TemporaryDirectory(dir=HOME) as scratch:
        archive = Path(scratch) / CLASS_ARCHIVE.name
        flags = (f"-XX:ArchiveClassesAtExit={archive}",)
        with KafkaCluster(Path(scratch) / "cluster", jvm_flags=flags) as cluster:
            cluster.create_topic("any")
        archive.rename(CLASS_ARCHIVE)


if __name__ == "__main__":
    main()
