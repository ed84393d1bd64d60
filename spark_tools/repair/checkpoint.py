"""Whether a checkpoint is that of the topic which the job is to go on with.

Spark's own notes name the topic alone. A topic that was made again, or another cluster's, may have
the same name: its letters below the noted offsets would never be read. So the topic's id is kept
beside them, in a file of its own.
"""

from __future__ import annotations

import json
from uuid import UUID

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import id_to_text
from spark_tools.files import Files
from spark_tools.spark.hadoop_files import HadoopFiles

_ID_FILE = "letter-topic-id"


def require_checkpoint_of(spark: SparkSession, checkpoint: str, topic: str, topic_id: UUID) -> None:
    """InvalidConfigError if the checkpoint is that of another topic; none is as good.

    One that does not say the topic's id yet does so afterwards.
    """
    _require_offsets_of(spark, checkpoint, topic)
    files = HadoopFiles(spark, checkpoint)
    require_noted_id(files, topic_id, checkpoint=checkpoint, topic=topic)


def require_noted_id(files: Files, topic_id: UUID, *, checkpoint: str, topic: str) -> None:
    """InvalidConfigError if the id of another topic is in a checkpoint; if none is, it gets this.

    `files` are those of the checkpoint.
    """
    expected, found = id_to_text(topic_id), files.read(_ID_FILE).strip()
    if not found:
        files.write(_ID_FILE, expected)
    elif found != expected:
        raise InvalidConfigError(
            "the checkpoint is that of another topic of the same name",
            checkpoint=checkpoint,
            topic=topic,
            expected=expected,
            found=found,
        )


def _require_offsets_of(spark: SparkSession, checkpoint: str, topic: str) -> None:
    try:
        lines = [row["value"] for row in spark.read.text(f"{checkpoint}/offsets").collect()]
    except PySparkException:
        return  # there is no checkpoint yet
    for line in lines:
        topics = _topics(line) - {topic}
        if topics:
            raise InvalidConfigError(
                "the checkpoint is that of another topic",
                checkpoint=checkpoint,
                expected=topic,
                found=min(topics),
            )


def _topics(line: str) -> set[str]:
    """The topics of a line that says offsets, {topic: {partition: offset}}."""
    try:
        found = json.loads(line)
    except ValueError:
        return set()
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        return set()
    return {name for name, each in found.items() if each and all(map(str.isdecimal, each))}
