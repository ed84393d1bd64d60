"""The examples of docs/examples, run unchanged on the tiered topics of a broker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.integration.rlm.gateway.twin_topics import TwinTopics
from tests.services.spark_jars import lake_jars

_CHECKOUT = Path(__file__).resolve().parents[3]
_EXAMPLES = _CHECKOUT / "docs" / "examples"
_FORMATS = ("delta", "iceberg") if pyspark.__version__ < "4.2" else ("delta",)


def test_notebook_when_its_cells_are_run_then_it_reads_the_topic(
    spark: SparkSession,
    twins: TwinTopics,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RLM_CONFIG", str(twins.host.config_path))
    monkeypatch.setenv("RLM_TOPIC", "every")
    notebook = json.loads((_EXAMPLES / "quickstart.ipynb").read_text())
    names: dict[str, object] = {}

    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # noqa: S102 - the project's notebook

    counts = re.search(r"(\d+) records, of which (\d+) are in the store", capsys.readouterr().out)
    assert counts
    whole, stored = map(int, counts.groups())
    read = spark.read.format("rlm").option("config", str(twins.host.config_path))
    assert stored == read.option("subscribe", "every").load().count()
    assert whole > stored > 0


def test_stream_when_a_batch_is_repeated_then_the_table_has_each_record_once(
    spark: SparkSession, twins: TwinTopics, tmp_path: Path
) -> None:
    """This runs in a separate Spark, which has the jars and extensions of the table formats.

    Iceberg has no release for Spark 4.2: `make test-spark-oldest` runs that example.
    """
    program = Path(__file__).with_name("lake_program.py")
    arguments = (str(twins.host.config_path), "every", str(tmp_path), str(lake_jars()), *_FORMATS)
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(_CHECKOUT)]))

    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=280.0,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    copied = json.loads(done.stdout)
    read = spark.read.format("rlm").option("config", str(twins.host.config_path))
    rows = read.option("subscribe", "every").option("columns", "offset").load().collect()
    stored = sorted(row.offset for row in rows)
    assert {name: sorted(offsets) for name, offsets in copied.items()} == dict.fromkeys(
        _FORMATS, stored
    )
