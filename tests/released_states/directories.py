"""Finds the directories with the states of released versions, and their files.

tests/golden/states/<version>/
    metadata-topic.jsonl   the records of the metadata topic
    dead-letter-topic.jsonl
    cache/                 the RocksDB directory of a manager that was killed
    store/                 a file system store
    expected.json          the answers of that version from these files
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
STATES = CHECKOUT / "tests" / "golden" / "states"
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*\w*")


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The directory of one version, and the paths of its files."""

    path: Path

    @property
    def metadata_topic(self) -> Path:
        return self.path / "metadata-topic.jsonl"

    @property
    def dead_letter_topic(self) -> Path:
        return self.path / "dead-letter-topic.jsonl"

    @property
    def cache(self) -> Path:
        return self.path / "cache"

    @property
    def store(self) -> Path:
        return self.path / "store"

    @property
    def expected_file(self) -> Path:
        return self.path / "expected.json"

    def expected(self) -> dict[str, Any]:
        """Return the answers that the version gave."""
        found: dict[str, Any] = json.loads(self.expected_file.read_text())
        return found


def current_version() -> str:
    """Return the version of this checkout."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def committed_versions() -> list[str]:
    """Return the versions whose state is kept, in any order."""
    found = STATES.iterdir() if STATES.is_dir() else iter(())
    return sorted(each.name for each in found if _VERSION.fullmatch(each.name))


def committed_state(version: str) -> StateDirectory:
    """Return the kept state of a version."""
    return StateDirectory(STATES / version)
