"""Reads the sizes of a partition's local segments, and of stored segments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_SUFFIX = ".log"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLogFiles:
    """One partition's local segments in the order of offsets, and the bytes of deleted segments."""

    base_offsets: tuple[int, ...]
    segment_bytes: tuple[int, ...]
    deleted_bytes: int

    @property
    def log_bytes(self) -> int:
        """Return the total size of all local segments, even those that the broker is deleting."""
        return sum(self.segment_bytes) + self.deleted_bytes

    @property
    def rolled_count(self) -> int:
        """Return the number of rolled segments."""
        return len(self.base_offsets) - 1

    @property
    def newest_rolled_offset(self) -> int:
        """Return the base offset of the newest rolled segment."""
        return self.base_offsets[-2]


def local_files(directory: Path) -> LocalLogFiles:
    """Return the segments in a partition's directory."""
    sizes = _sizes(directory, "*.log*")
    names = sorted(name for name in sizes if name.endswith(_SUFFIX))
    return LocalLogFiles(
        base_offsets=tuple(int(name.removesuffix(_SUFFIX)) for name in names),
        segment_bytes=tuple(sizes[name] for name in names),
        deleted_bytes=sum(size for name, size in sizes.items() if name not in names),
    )


def stored_log_sizes(store: Path) -> tuple[int, ...]:
    """Return the sizes of all stored segments."""
    return tuple(_sizes(store, "*/*/*.log").values())


def _sizes(directory: Path, pattern: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in directory.glob(pattern):
        try:
            found[path.name] = path.stat().st_size
        except FileNotFoundError:  # The file was deleted after it was listed.
            continue
    return found
