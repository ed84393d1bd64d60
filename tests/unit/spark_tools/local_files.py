"""Files of a directory of this host, and a process that may be killed as it changes them."""

from __future__ import annotations

import shutil
from pathlib import Path

from spark_tools.files import Files


class KilledError(Exception):
    """Represents a kill -9."""


class LocalFiles(Files):
    """`changes_left` is the number of changes before the process is killed."""

    def __init__(self, directory: Path, changes_left: int = 1_000_000) -> None:
        self._directory = directory
        self._changes_left = changes_left

    def names(self, directory: str) -> list[str]:
        path = self._directory / directory
        return sorted(each.name for each in path.iterdir()) if path.is_dir() else []

    def texts(self, directory: str) -> list[str]:
        return [each.read_text() for each in (self._directory / directory).rglob("*.json")]

    def read(self, path: str) -> str:
        found = self._directory / path
        return found.read_text() if found.exists() else ""

    def write(self, path: str, text: str) -> None:
        self._change()
        found = self._directory / path
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text(text)

    def move(self, path: str, target: str) -> bool:
        self._change()
        found, destination = self._directory / path, self._directory / target
        if destination.exists() or not found.exists():
            return False
        destination.parent.mkdir(parents=True, exist_ok=True)
        found.rename(destination)
        return True

    def exists(self, path: str) -> bool:
        return (self._directory / path).exists()

    def remove(self, path: str) -> None:
        self._change()
        found = self._directory / path
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)

    def _change(self) -> None:
        if not self._changes_left:
            raise KilledError
        self._changes_left -= 1
