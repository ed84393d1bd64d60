"""The data source reads segments of a plug-in's store and layout in Spark's Python processes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.plugin_example import install_example


@pytest.fixture
def tiered(
    host: BrokerHost, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> TieredLog:
    """A topic that the example's classes have stored and trimmed."""
    log = TieredLog.create(host.cluster, topic_name, host.store)
    host.set(
        **{
            "rsm.config.storage.backend": "rlm_example.storage:SqliteChunkStorage",
            "rsm.config.storage.path": str(tmp_path / "store.sqlite"),
            "rsm.config.layout": "rlm_example.layout:LabelledLayout",
            "rsm.config.layout.label": "blue",
        }
    )
    log.produce(3)
    installed = install_example(tmp_path / "example")
    with monkeypatch.context() as path:
        path.setenv("PYTHONPATH", str(installed), prepend=os.pathsep)
        with host.running(), host.metadata() as metadata:
            host.wait_ready()
            log.set_policy(metadata)
            log.wait_tiered(metadata)
    return log


def test_read_when_store_and_layout_are_plug_ins_then_the_executors_load_them(
    spark: SparkSession, host: BrokerHost, tiered: TieredLog, tmp_path: Path
) -> None:
    archive = shutil.make_archive(
        str(tmp_path / "example"), "zip", tmp_path / "example" / "installed", "rlm_example"
    )
    spark.sparkContext.addPyFile(archive)
    frame = (
        spark.read.format("rlm")
        .option("config", str(host.config_path))
        .options(subscribe=tiered.topic)
        .load()
    )

    offsets = sorted(row["offset"] for row in frame.select("offset").collect())

    assert offsets
    assert offsets == list(range(offsets[-1] + 1))
    assert offsets[-1] >= tiered.local_start_offset()
