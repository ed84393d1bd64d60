"""The export job: a range of a partition at a time, files first, then its line of the manifest.

Killed in between, the range is done again into the same path, which replaces what is there; so
what the manifest says is exported once, and files that no line names are not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_tools.connection import Connection
from spark_tools.export.ranges import MANIFEST_DDL, ExportedRange, PlannedRange, remaining
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.planner import plan_pieces


class Export:
    """Exports what `options` of the data source name into `output`, a directory of any store."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str], output: str) -> None:
        self._spark = spark
        self._options = dict(options)
        self._output = output

    def run(self) -> list[ExportedRange]:
        """What was exported now; empty if all that is stored was exported before."""
        pieces = plan_pieces(Connection.of(self._options), ReadOptions.of(self._options))
        return [self._export(planned) for planned in remaining(pieces, self.manifest())]

    def manifest(self) -> list[ExportedRange]:
        """What was exported so far."""
        try:
            rows = self._spark.read.schema(MANIFEST_DDL).json(self._manifest_path).collect()
        except AnalysisException:
            return []  # nothing was
        return [ExportedRange(**row.asDict()) for row in rows]

    @property
    def _manifest_path(self) -> str:
        return f"{self._output}/manifest"

    def _export(self, planned: PlannedRange) -> ExportedRange:
        tip, path = planned.topic_id_partition, f"{self._output}/{planned.path}"
        bounds = {
            "startingOffsets": planned.offsets.start_offset,
            "endingOffsets": planned.offsets.end_offset,
        }
        options = {
            **{key: value for key, value in self._options.items() if key != "subscribe"},
            "assign": json.dumps({tip.topic: [tip.partition]}),
            **{
                name: json.dumps({tip.topic: {str(tip.partition): offset}})
                for name, offset in bounds.items()
            },
        }
        rows = self._spark.read.format("rlm").options(**options).load()
        # Columns that the path has already would stand twice.
        rows.drop("topic", "partition").write.mode("overwrite").parquet(path)
        exported = planned.exported(self._spark.read.parquet(path).count())
        line = self._spark.createDataFrame([asdict(exported)], MANIFEST_DDL)
        line.coalesce(1).write.mode("append").json(self._manifest_path)
        return exported
