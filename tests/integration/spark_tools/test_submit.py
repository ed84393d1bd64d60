"""The jobs, submitted to a cluster by the commands of docs/spark.md.

The executors are separate processes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyarrow import parquet

from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.twin_topics import TwinTopics
from tests.integration.spark_tools.repair_world import RepairWorld
from tests.metadata_builder import DELETE_STARTED, FINISHED
from tests.services.spark_submit import submitted

_CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "sent",
    [
        "These commands pack everything and send it to the executors:",
        "send the package alone, as a zip:",
    ],
)
def test_export_when_submitted_to_a_cluster_as_the_docs_show_then_the_same(
    twins: TwinTopics, tmp_path: Path, worker_directories: Path, sent: str
) -> None:
    command = documented_commands(sent)
    actual = {
        "rlm.properties": str(twins.host.config_path),
        " orders ": " --option columns=offset,value every ",
        "s3a://lake/kafka": str(tmp_path / "out"),
    }

    done = submitted(command, actual, tmp_path)

    assert done.returncode == 0, done.stderr
    stored = twins["every"].log.local_start_offset
    assert "every-0 [0, " in done.stdout
    files = parquet.read_table(tmp_path / "out" / "data").column("offset").to_pylist()
    assert len(files) == len(set(files))
    assert max(files) < stored + 20
    compiled = {path.relative_to(worker_directories).parts[2] for path in _kept(worker_directories)}
    assert compiled == ({"environment"} if "--archives" in command else set())


@pytest.mark.timeout(600)  # two jobs, one after the other, each with its own Spark
@pytest.mark.usefixtures("worker_directories")
def test_audit_and_repair_when_submitted_to_a_cluster_as_the_docs_show_then_they_do_their_work(
    host: BrokerHost, world: RepairWorld, connector: Path, tmp_path: Path
) -> None:
    with host.metadata() as metadata:
        world.claim(metadata)
        alive = world.store(metadata, FINISHED)
        world.send(world.store(metadata, DELETE_STARTED, 100))
    properties = {**world.options, "remote.orphan.grace.ms": "0"}
    config = tmp_path / "rlm.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    actual = {
        "spark-jars/": f"{connector}/",
        "rlm.properties": str(config),
        "s3a://lake/audit": str(tmp_path / "audit"),
        "audit.html": str(tmp_path / "audit.html"),
        "s3a://lake/repair": str(tmp_path / "checkpoint"),
    }
    command = documented_commands("[Spark's Kafka connector](#spark-jars), too:")

    done = submitted(f"make spark-zip >&2\n{command}", actual, tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "dangling_delete 1\nrepaired 1\n"
    assert "<h1>No data is missing or damaged.</h1>" in (tmp_path / "audit.html").read_text()
    kinds = parquet.read_table(tmp_path / "audit" / "findings").column("kind").to_pylist()
    assert kinds == ["dangling_delete"]
    assert world.names() == set(alive.metadata.object_keys)


@pytest.fixture
def worker_directories() -> Iterator[Path]:
    """The directories of workers of `local-cluster`; removed afterwards."""
    directory = Path(pyspark.__file__).parent / "work"
    shutil.rmtree(directory, ignore_errors=True)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def documented_commands(after: str) -> str:
    """Return the shell commands that follow a sentence in docs/spark.md."""
    text = (_CHECKOUT / "docs" / "spark.md").read_text()
    block = text.split(f"{after}\n\n", 1)[1].split("\n\n", 1)[0]
    assert all(line.startswith("    ") for line in block.splitlines())
    return "\n".join(line.removeprefix("    ") for line in block.splitlines())


def _kept(directory: Path) -> list[Path]:
    """Return the code that numba compiled, below the application's and the executor's directory."""
    return sorted(directory.glob("*/*/*/**/record_kernel.*.nbc"))
