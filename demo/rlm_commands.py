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
    """Commands with one configuration file. An exit code other than 0 raises DemoFailedError."""

    configuration: Path

    def set_topic(self, topic: str, *flags: str) -> None:
        """Tier a topic, or change its policy."""
        self._run("topic", "set", topic, *flags)

    def partitions(self, topic: str) -> dict[int, Mapping[str, Any]]:
        """Return `rlm status --json` of a topic, by partition."""
        status = json.loads(self._run("status", topic, "--json"))
        return {each["partition"]: each for each in status["partitions"]}

    def offload_segments(self, topic: str) -> list[Mapping[str, Any]]:
        """Return the offload segments of `rlm offload-status --json` of a streamed topic."""
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
    return DemoFailedError(f"`{' '.join(['rlm', *command[1:]])}` ended with {code}: {errors}")
