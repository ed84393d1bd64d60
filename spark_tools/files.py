"""Defines access to files that a job keeps next to Spark's output.

spark_tools.spark.hadoop_files implements it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod


class Files(ABC):
    """Accesses files and directories by their paths relative to one directory. Not thread-safe."""

    @abstractmethod
    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, ascending; no names if it does not exist."""

    @abstractmethod
    def texts(self, directory: str) -> list[str]:
        """Return the contents of all files below a directory, in any order.

        Returns no contents if the directory does not exist.
        """

    @abstractmethod
    def read(self, path: str) -> str:
        """Return the text of a file; an empty string if it does not exist."""

    @abstractmethod
    def write(self, path: str, text: str) -> None:
        """Create the file or replace its content."""

    @abstractmethod
    def move(self, path: str, target: str) -> bool:
        """Move a file; return False and change nothing if `target` exists or `path` does not.

        The move is as atomic as the file system's rename. Where a rename replaces files (`file:`,
        S3), two concurrent moves to one target may both return True. The last move wins.
        """

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether the path is that of a file or a directory."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, or a directory with its content; do nothing if it does not exist."""
