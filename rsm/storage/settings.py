"""Represents the settings of the stores and of rehearsals as plain values.

The module is separate, so that a program can parse the settings without importing a store.
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
    """Represents an existing directory and the permissions of new files and directories in it."""

    root: Path
    access: FileAccess = DEFAULT_ACCESS


# Excludes the memory store, because trimmed segments must be durable.
StoreSettings = FilesystemSettings | AzureSettings | GcsSettings | HdfsSettings | S3Settings
"""The identity of a store, and how to access it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """Represents the shares, from 0 to 1, of requests that fail and of reads with a wrong bit.

    A creation with content fails up to 1.5 times as often. `seed` selects the affected requests.
    """

    fail_share: float = 0.0
    flip_share: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalSettings:
    """Represents how a rehearsal changes a store; the defaults change nothing.

    With `faults_while_file`, faults occur only while that file exists. Each request checks for the
    file, so you can break and repair a store while programs run.
    """

    delay_ms: int = 0
    bytes_per_second: int | None = None
    requests_per_second: int | None = None
    faults: FaultPlan = field(default_factory=FaultPlan)
    faults_while_file: Path | None = None
    is_read_only: bool = False
