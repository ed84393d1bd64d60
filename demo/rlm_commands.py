"""Runs `rlm topic set`, `rlm status` and `rlm offload-status` as a user does."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.failure import DemoFailedError
from tests.services.rlm_run import RLM

_TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RlmCommands:
    """Runs commands with one configuration file.

    Raises DemoFailedError if the exit code is not 0.
    """

    configuration: Path

    def set_topic(self, topic: str, *flags: str) -> None:
        """Tier a topic, or change its policy."""
        self._run("topic", "set", topic, *flags)

    def partitions(self, topic: str) -> dict[int, Mapping[str, Any]]:
        """Return the partitions in `rlm status --json` of a topic, by number."""
        status = json.loads(self._run("status", topic, "--json"))
        return {each["partition"]: each for each in status["partitions"]}

    def offload_segments(self, topic: str) -> list[Mapping[str, Any]]:
        """Return the offload segments in `rlm offload-status --json` of a streamed topic."""
        status = json.loads(self._run("offload-status", topic, "--json"))
        return [each for found in status["partitions"] for each in found["offload_segments"]]

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


def _failed(command: list[str], code: int, errors: str) -> DemoFailedError:
    return DemoFailedError(
        f"cannot run `{' '.join(['rlm', *command[1:]])}`: exit code {code}: {errors}"
    )
