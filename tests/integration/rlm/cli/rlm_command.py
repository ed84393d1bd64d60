"""Runs commands of `rlm` as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Rlm:
    """The command, with its own configuration and metadata topic."""

    config: Path
    metadata_topic: str

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("topic", *arguments)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rlm", *arguments, "--config", str(self.config)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def policies(self) -> Mapping[str, Mapping[str, object]]:
        listed = self("list", "--json")
        assert listed.returncode == 0, listed.stderr
        return {each["topic"]: each for each in json.loads(listed.stdout)["topics"]}
