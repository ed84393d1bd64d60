"""Whether a checkpoint is that of the topic which the job is to go on with."""

from __future__ import annotations

import json

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rsm.segment.errors import InvalidConfigError


def require_checkpoint_of(spark: SparkSession, checkpoint: str, topic: str) -> None:
    """InvalidConfigError if the checkpoint holds offsets of another topic; none is as good."""
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
