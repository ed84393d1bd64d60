"""Reads a partition with `rlm read --from-store`, which uses only the store."""

from __future__ import annotations

import json
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from demo.failure import DemoFailedError
from demo.ledger import LoggedRecord
from demo.records import Headers
from tests.services.rlm_run import RLM

_END_TIMEOUT_S = 30.0


class StoreOnlyReader:
    """Reads with a configuration file of only the store's settings.

    `count` is the number of records read.
    """

    def __init__(self, configuration: Path) -> None:
        self._configuration = configuration
        self.count = 0

    def records(self, topic: str, partition: int) -> Iterator[LoggedRecord]:
        """Yield each record when it is printed. Raises DemoFailedError if the command fails."""
        name = f"{topic}:{partition}"
        command = [RLM, "read", name, "--from-store", "--json"]
        command += ["--config", str(self._configuration)]
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                self.count += 1
                yield logged_record(json.loads(line))
            code = process.wait(_END_TIMEOUT_S)
            if code != 0:
                errors.seek(0)
                text = errors.read().decode(errors="replace")
                raise DemoFailedError(
                    f"cannot run `rlm read {name} --from-store`: exit code {code}: {text}"
                )


def logged_record(row: Mapping[str, Any]) -> LoggedRecord:
    """Return the record in a line of `rlm read --json`."""
    return LoggedRecord(
        partition=row["partition"],
        offset=row["offset"],
        timestamp_ms=row["timestamp_ms"],
        key=_field(row, "key"),
        value=_field(row, "value"),
        headers=_headers(row["headers"]),
    )


def _field(row: Mapping[str, Any], name: str) -> bytes | None:
    encoded = row.get(f"{name}_base64")
    if encoded is not None:
        return b64decode(encoded)
    text = row[name]
    return None if text is None else text.encode()


def _headers(found: Sequence[Sequence[str | None]]) -> Headers:
    return tuple((str(name), _header_value(*value)) for name, *value in found)


def _header_value(text: str | None, encoded: str | None = None) -> bytes | None:
    if encoded is not None:
        return b64decode(encoded)
    return None if text is None else text.encode()
