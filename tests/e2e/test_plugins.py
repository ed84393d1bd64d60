"""Scenario 121: a topic tiered by plug-ins of an installed distribution, and by one that fails."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyarrow import parquet

from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_all
from tests.e2e.tiered_log import TieredLog
from tests.services import plain_http
from tests.services.plugin_example import install_example
from tests.services.ports import free_ports
from tests.services.spark_submit import submitted
from tests.services.waiting import wait_until

_SEGMENTS = 3
_FAILING = """
from pathlib import Path

from rlm_example.storage import SqliteChunkStorage


class Failing(SqliteChunkStorage):
    def __init__(self, settings):
        super().__init__(settings)
        self._flag = Path(settings["flag"])

    def create_with_content(self, name, source, *, attributes=None):
        if self._flag.exists():
            raise KeyError(name)
        return super().create_with_content(name, source, attributes=attributes)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the example is installed; on the path of this test's processes."""
    directory = install_example(tmp_path / "example")
    (directory / "failing.py").write_text(_FAILING)
    monkeypatch.setenv("PYTHONPATH", str(directory), prepend=os.pathsep)
    return directory


def plugin_errors(host: BrokerHost) -> dict[tuple[str, str], float]:
    """Return the errors that the processes have counted, by class and method."""
    answer = plain_http.get(host.metrics_url)
    return {
        (sample.labels["class"], sample.labels["method"]): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        if sample.name == "rlm_plugin_errors_total"
    }


def offsets_exported_by_spark(host: BrokerHost, topic: str, directory: Path) -> list[int]:
    """Return the offsets that executors in separate processes read from the store, ascending."""
    command = (
        "make spark-zip >&2\n"
        "spark-submit --master spark://master:7077 build/spark/rlm_export.py "
        f"--config {host.config_path} {topic} {directory / 'exported'}"
    )
    done = submitted(command, {}, directory)
    assert done.returncode == 0, done.stderr
    table = parquet.read_table(directory / "exported" / "data", columns=["offset"])
    return sorted(table.column("offset").to_pylist())


@pytest.mark.timeout(300)  # this process uses another Spark
@pytest.mark.usefixtures("installed")
def test_topic_when_store_layout_and_metadata_manager_are_plug_ins_then_all_is_read_from_both_tiers(
    host: BrokerHost, log: TieredLog, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    host.set(
        **{
            "gateway.listener": f"127.0.0.1:{port}",
            "rsm.config.storage.backend": "rlm_example.storage:SqliteChunkStorage",
            "rsm.config.storage.path": str(tmp_path / "store.sqlite"),
            "rsm.config.layout": "rlm_example.layout:LabeledLayout",
            "rsm.config.layout.label": "blue",
            "remote.log.metadata.manager.class.name": "rlm_example.metadata:LoggingMetadataManager",
            "rlmm.config.manager.logger": "rlm_example.audit",
        }
    )
    log.produce(_SEGMENTS)
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        log.set_policy(metadata)
        log.wait_tiered(metadata)
        stored = log.finished(metadata)
        offsets = read_all(f"127.0.0.1:{port}", log.topic)
        lines = host.rlm("read", f"{log.topic}:0", "--json").splitlines()
        exported = offsets_exported_by_spark(host, log.topic, tmp_path)
        assert plugin_errors(host) == {}

    assert log.local_start_offset() > 0
    assert {segment.layout for segment in stored} == {"labeled"}
    assert offsets == list(range(offsets[-1] + 1))
    assert [json.loads(line)["offset"] for line in lines] == offsets
    assert exported == list(range(stored[-1].offsets.end_offset))
    assert " rlm_example.audit published event=" in host.log_path.read_text()


@pytest.mark.usefixtures("installed")
def test_topic_when_the_storage_manager_is_a_plug_in_then_segments_are_where_it_puts_them(
    host: BrokerHost, log: TieredLog, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    host.set(
        **{
            "remote.log.storage.manager.class.name": "rlm_example.manager:ArchiveStorageManager",
            "rsm.config.archive.root": str(archive),
            "remote.copy.verify": "read",
        }
    )
    log.produce(_SEGMENTS)
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        log.set_policy(metadata)
        log.wait_tiered(metadata)
        keys = [each.key for segment in log.finished(metadata) for each in segment.objects]
        count = len(host.rlm("read", f"{log.topic}:0", "--json").splitlines())

    assert log.local_start_offset() > 0
    assert count > log.local_start_offset()
    assert keys
    assert all((archive / key).is_file() for key in keys)
    assert not log.segment_keys()


def test_topic_when_a_plug_in_raises_then_it_is_counted_and_nothing_is_deleted_or_trimmed(
    host: BrokerHost, log: TieredLog, installed: Path, tmp_path: Path
) -> None:
    flag = installed / "fail"
    flag.touch()
    host.set(
        **{
            "rsm.config.storage.backend": "failing:Failing",
            "rsm.config.storage.path": str(tmp_path / "store.sqlite"),
            "rsm.config.storage.flag": str(flag),
        }
    )
    log.produce(_SEGMENTS)
    bases = log.base_offsets()
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        log.set_policy(metadata)
        key = ("failing:Failing", "create_with_content")
        wait_until(
            lambda: plugin_errors(host).get(key, 0) >= 2, 60.0, lambda: f"{plugin_errors(host)}"
        )
        assert log.base_offsets() == bases
        assert log.local_start_offset() == 0
        assert log.finished(metadata) == []

        flag.unlink()
        log.wait_tiered(metadata)

    assert log.local_start_offset() > 0
