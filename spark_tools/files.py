"""Files that a job keeps beside what Spark writes; spark_tools.spark.hadoop_files has real ones."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Files(ABC):
    """Files and directories below one directory, by paths relative to it. One thread's."""

    @abstractmethod
    def names(self, directory: str) -> list[str]:
        """The names of what is in it, ascending; none if there is no such directory."""

    @abstractmethod
    def texts(self, directory: str) -> list[str]:
        """The contents of all files in it and below, in no order; none if it is not there."""

    @abstractmethod
    def read(self, path: str) -> str:
        """All of a file; empty if there is no such file."""

    @abstractmethod
    def write(self, path: str, text: str) -> None:
        """Make the file, or replace what is in it."""

    @abstractmethod
    def move(self, path: str, target: str) -> bool:
        """Move a file; False, and nothing is changed, if `target` is there or `path` is not.

        As atomic as a rename of the file system. Of two moves to one target at once both may return
        True where a rename replaces files (`file:`, S3); then the last one's content is there.
        """

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it; none is as good."""
