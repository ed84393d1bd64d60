"""The settings of the stores and of rehearsals, as plain values.

They have a module of their own, so that a program that only parses them imports no store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rsm.storage.azure.settings import AzureSettings
from rsm.storage.filesystem.file_access import DEFAULT_ACCESS, FileAccess
from rsm.storage.gcs.settings import GcsSettings
from rsm.storage.hdfs.settings import HdfsSettings
from rsm.storage.s3.settings import S3Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesystemSettings:
    """An existing directory, and the permissions of new files and directories in it."""

    root: Path
    access: FileAccess = DEFAULT_ACCESS


# The memory store is not among them, because trimmed segments must be durable.
StoreSettings = FilesystemSettings | AzureSettings | GcsSettings | HdfsSettings | S3Settings
"""The identity of a store, and how to access it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """The shares, from 0 to 1, of requests that fail and of reads with a wrong bit.

    `seed` selects these requests.
    """

    fail_share: float = 0.0
    flip_share: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalSettings:
    """How a store is made worse for a rehearsal; the defaults change nothing.

    With `faults_while_file`, faults occur only while the file exists. Each request checks for the
    file, so a store can be broken and repaired while programs run.
    """

    delay_ms: int = 0
    bytes_per_second: int | None = None
    requests_per_second: int | None = None
    faults: FaultPlan = field(default_factory=FaultPlan)
    faults_while_file: Path | None = None
    is_read_only: bool = False
