"""The product's commands as a user calls them: `rlm topic set`, `rlm status`, `rlm read`."""

from __future__ import annotations

import base64
import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from demo.failure import DemoFailedError
from demo.ledger import Seen
from tests.services.rlm_run import RLM

_TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RlmCommands:
    """Commands with one configuration file; DemoFailedError where one ends with an error."""

    configuration: Path

    def set_topic(self, topic: str, *flags: str) -> None:
        """Tier a topic, or change how."""
        self._run("topic", "set", topic, *flags)

    def partitions(self, topic: str) -> dict[int, Mapping[str, Any]]:
        """`rlm status --json` of a topic, by partition."""
        status = json.loads(self._run("status", topic, "--json"))
        return {each["partition"]: each for each in status["partitions"]}

    def read(self, topic: str, partition: int, tiers: Counter[str]) -> Iterator[Seen]:
        """All records of a partition, from offset 0 on; `tiers` counts where they came from."""
        command = self._command("read", f"{topic}:{partition}", "--from", "0", "--json")
        with (
            TemporaryFile() as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
        ):
            assert process.stdout is not None
            try:
                yield from _records(process.stdout, tiers)
            except BaseException:
                process.kill()
                raise
            if process.wait(_TIMEOUT_S) != 0:
                errors.seek(0)
                raise _failed(command, process.returncode, errors.read().decode(errors="replace"))

    def _run(self, *arguments: str) -> str:
        command = self._command(*arguments)
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        if done.returncode != 0:
            raise _failed(command, done.returncode, done.stderr)
        return done.stdout

    def _command(self, *arguments: str) -> list[str]:
        return [RLM, *arguments, "--config", str(self.configuration)]


def _records(lines: IO[bytes], tiers: Counter[str]) -> Iterator[Seen]:
    for line in lines:
        record = json.loads(line)
        tiers[record["tier"]] += 1
        yield Seen(
            partition=record["partition"],
            offset=record["offset"],
            timestamp_ms=record["timestamp_ms"],
            key=_content(record, "key"),
            value=_content(record, "value"),
            headers=tuple(map(_header, record["headers"])),
        )


def _content(record: Mapping[str, Any], name: str) -> bytes | None:
    """Bytes that are text stand under their name, others as base64."""
    if name in record:
        return _encoded(record[name])
    return base64.b64decode(record[f"{name}_base64"])


def _header(header: list[str]) -> tuple[str, bytes | None]:
    """[name, text or null], or [name, null, base64]."""
    name, text, *binary = header
    return name, base64.b64decode(binary[0]) if binary else _encoded(text)


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _failed(command: list[str], code: int, errors: str) -> DemoFailedError:
    return DemoFailedError(f"`{' '.join(['rlm', *command[1:]])}` ended with {code}: {errors}")
