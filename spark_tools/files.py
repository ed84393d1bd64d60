"""Defines access to files that a job keeps next to Spark's output (spark.hadoop_files)."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Files(ABC):
    """Files and directories below one directory, by relative paths. Not thread-safe."""

    @abstractmethod
    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, ascending; none if it does not exist."""

    @abstractmethod
    def texts(self, directory: str) -> list[str]:
        """Return the contents of all files below a directory, unordered; none if it is missing."""

    @abstractmethod
    def read(self, path: str) -> str:
        """Return a whole file; empty if it does not exist."""

    @abstractmethod
    def write(self, path: str, text: str) -> None:
        """Create the file or replace its content."""

    @abstractmethod
    def move(self, path: str, target: str) -> bool:
        """Move a file; return False and change nothing if `target` exists or `path` does not.

        The move is as atomic as the file system's rename. Where a rename replaces files (`file:`,
        S3), two concurrent moves to one target may both return True. The content of the last one
        remains.
        """

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether there is a file or a directory."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, or a directory with its content; do nothing if it does not exist."""
