"""Whether a checkpoint is that of the topic which the job is to go on with.

Spark's own notes name the topic alone. A topic that was made anew, or another cluster's, may have
the same name: its letters below the noted offsets would never be read. So the topic's id is kept
beside them, in a file of its own.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from uuid import UUID

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import id_to_text

_ID_FILE = "letter-topic-id"


class TextFile(ABC):
    """A small file of any file system."""

    @abstractmethod
    def read(self) -> str:
        """All of it; empty if there is no such file."""

    @abstractmethod
    def write(self, text: str) -> None:
        """Make the file, or replace what is in it."""


class HadoopFile(TextFile):
    """A file where Spark keeps its checkpoints; the driver alone reads and writes it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        # Spark has no public way to it that needs no executor.
        jvm = spark.sparkContext._jvm  # noqa: SLF001 - as above
        assert jvm is not None, "a session that runs has one"
        configuration = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
        self._path = jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(configuration)

    def read(self) -> str:
        if not self._files.exists(self._path):
            return ""
        stream = self._files.open(self._path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, text: str) -> None:
        replace = True
        stream = self._files.create(self._path, replace)
        try:
            stream.write(text.encode())
        finally:
            stream.close()


def require_checkpoint_of(spark: SparkSession, checkpoint: str, topic: str, topic_id: UUID) -> None:
    """InvalidConfigError if the checkpoint is that of another topic; none is as good.

    One that does not say the topic's id yet does so afterwards.
    """
    _require_offsets_of(spark, checkpoint, topic)
    noted = HadoopFile(spark, f"{checkpoint}/{_ID_FILE}")
    require_noted_id(noted, topic_id, checkpoint=checkpoint, topic=topic)


def require_noted_id(noted: TextFile, topic_id: UUID, *, checkpoint: str, topic: str) -> None:
    """InvalidConfigError if the file has the id of another topic; an empty one is given this."""
    expected, found = id_to_text(topic_id), noted.read().strip()
    if not found:
        noted.write(expected)
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
