"""Checks whether a checkpoint belongs to the topic that the job reads.

**Undeleted data:** with the checkpoint of another topic of the same name, the job would never read
the dead letters below that topic's offsets. Spark records only the topic's name, so a separate file
in the checkpoint records the topic's id.
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
    """Raise InvalidConfigError if the checkpoint exists and belongs to another topic.

    Records the topic's id if the checkpoint does not contain one.
    """
    _require_offsets_of(spark, checkpoint, topic)
    files = HadoopFiles(spark, checkpoint)
    require_noted_id(files, topic_id, checkpoint=checkpoint, topic=topic)


def require_noted_id(files: Files, topic_id: UUID, *, checkpoint: str, topic: str) -> None:
    """Raise InvalidConfigError if a checkpoint contains the id of another topic.

    Adds `topic_id` if it contains none. `files` are those of the checkpoint.
    """
    expected, found = id_to_text(topic_id), files.read(_ID_FILE).strip()
    if not found:
        files.write(_ID_FILE, expected)
    elif found != expected:
        raise InvalidConfigError(
            "cannot use the checkpoint: it belongs to another topic of the same name",
            checkpoint=checkpoint,
            topic=topic,
            expected=expected,
            found=found,
            advice="Give a new directory for the checkpoint",
        )


def _require_offsets_of(spark: SparkSession, checkpoint: str, topic: str) -> None:
    try:
        lines = [row["value"] for row in spark.read.text(f"{checkpoint}/offsets").collect()]
    except PySparkException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return  # There is no checkpoint yet.
    for line in lines:
        topics = _topics(line) - {topic}
        if topics:
            raise InvalidConfigError(
                "cannot use the checkpoint: it belongs to another topic",
                checkpoint=checkpoint,
                expected=topic,
                found=min(topics),
                advice="Give a new directory for the checkpoint",
            )


def _topics(line: str) -> set[str]:
    """Return the topics of a line of offsets, {topic: {partition: offset}}."""
    try:
        found = json.loads(line)
    except ValueError:
        return set()
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        return set()
    return {name for name, each in found.items() if each and all(map(str.isdecimal, each))}
