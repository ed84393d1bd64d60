"""An audit over a Spark that fails, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rsm.storage.settings import FilesystemSettings
from spark_tools.audit.job import Audit, AuditSettings, IncompleteError
from spark_tools.connection import StoreConnection
from spark_tools.snapshot import MetadataSnapshot
from tests.fakes.clock import FakeClock

SETTINGS = AuditSettings(grace_ms=0, objects_per_range=10, verify_checksums=False)


class FailingSpark:
    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def sparkContext(self) -> object:  # noqa: N802 - Spark's name
        raise self._error


class ReadMetadata:
    """Reports whether it was read completely, and nothing else."""

    def __init__(self, unread: Mapping[str, int]) -> None:
        self._unread = unread

    def unread_records(self) -> Mapping[str, int]:
        return self._unread


def audit(error: Exception, unread: Mapping[str, int], root: Path) -> Audit:
    @contextmanager
    def open_metadata() -> Iterator[MetadataSnapshot]:
        yield cast("MetadataSnapshot", ReadMetadata(unread))

    store = StoreConnection(settings=FilesystemSettings(root=root))
    spark = cast("SparkSession", FailingSpark(error))
    return Audit(spark, store, open_metadata, SETTINGS, FakeClock())


@pytest.mark.parametrize("error", [PySparkException("no answer"), Py4JError("executor lost")])
def test_audit_when_spark_fails_in_any_way_then_nothing_is_decided(
    error: Exception, tmp_path: Path
) -> None:
    """Scenario 107: an incomplete listing proves nothing."""
    with pytest.raises(IncompleteError, match="cannot read the store completely"):
        audit(error, {}, tmp_path).run()


def test_audit_when_an_executor_fails_then_its_error_is_reported_and_not_its_stack(
    tmp_path: Path,
) -> None:
    stack = "Job aborted: Traceback (most recent call last):\n  File worker.py\n"
    error = PySparkException(
        f"{stack}rsm.segment.errors.RetriableError: no answer (root=/x)\n at y"
    )

    with pytest.raises(IncompleteError) as raised:
        audit(error, {}, tmp_path).run()

    said = "cannot read the store completely: no answer (root=/x)"
    assert str(raised.value) == said


def test_audit_when_a_record_can_not_be_read_then_nothing_is_listed(tmp_path: Path) -> None:
    """Scenario 107, R22: metadata that is not whole proves nothing."""
    asked = AssertionError("Spark was asked")

    with pytest.raises(IncompleteError, match="cannot read the metadata topic completely"):
        audit(asked, {"corrupt": 1}, tmp_path).run()
