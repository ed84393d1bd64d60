"""Accesses files in any file system that Spark supports, from the driver.

Source: Hadoop's FileSystem. Spark has no public API that does this without executors.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_tools.files import Files

_REPLACING = True
_RECURSIVE = True


class HadoopFiles(Files):
    """Files in any file system that Spark supports. Not thread-safe."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._spark = spark
        self._directory = directory.rstrip("/")
        jvm = spark.sparkContext._jvm  # noqa: SLF001 - private API
        assert jvm is not None, "a running session has a JVM"
        self._path_type = jvm.org.apache.hadoop.fs.Path
        configuration = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - private API
        self._files = self._path("").getFileSystem(configuration)

    def names(self, directory: str) -> list[str]:
        path = self._path(directory)
        if not self._files.exists(path):
            return []
        return sorted(str(each.getPath().getName()) for each in self._files.listStatus(path))

    def texts(self, directory: str) -> list[str]:
        if not self.exists(directory):
            return []
        path = f"{self._directory}/{directory}"
        rows = self._spark.read.text(path, wholetext=True, recursiveFileLookup=True).collect()
        return [row["value"] for row in rows]

    def read(self, path: str) -> str:
        if not self.exists(path):
            return ""
        stream = self._files.open(self._path(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        stream = self._files.create(self._path(path), _REPLACING)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def move(self, path: str, target: str) -> bool:
        if self.exists(target) or not self.exists(path):
            return False
        destination = self._path(target)
        self._files.mkdirs(destination.getParent())
        return bool(self._files.rename(self._path(path), destination))

    def exists(self, path: str) -> bool:
        return bool(self._files.exists(self._path(path)))

    def remove(self, path: str) -> None:
        self._files.delete(self._path(path), _RECURSIVE)

    def full_path(self, path: str) -> str:
        """Return the path with the directory, as Spark takes it."""
        return f"{self._directory}/{path}"

    def local_path(self, path: str) -> str | None:
        """Return the path on the host; None if the file system is not the host's."""
        if self._files.getScheme() != "file":
            return None
        return str(self._files.makeQualified(self._path(path)).toUri().getPath())

    def _path(self, path: str) -> Any:  # noqa: ANN401 - a Java class
        return self._path_type(f"{self._directory}/{path}" if path else self._directory)
