"""What lies on the disk: the broker's log of a partition, and the objects in the store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_SUFFIX = ".log"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLogFiles:
    """One partition's log files, ascending, and the bytes of those that wait for their deletion."""

    base_offsets: tuple[int, ...]
    segment_bytes: tuple[int, ...]
    deleted_bytes: int

    @property
    def log_bytes(self) -> int:
        """All bytes that lie on the disk."""
        return sum(self.segment_bytes) + self.deleted_bytes

    @property
    def rolled_count(self) -> int:
        """Segments that the broker appends to no more."""
        return len(self.base_offsets) - 1

    @property
    def newest_rolled_offset(self) -> int:
        """Base offset of the newest of them."""
        return self.base_offsets[-2]


def local_files(directory: Path) -> LocalLogFiles:
    """List a partition's directory as it is now."""
    sizes = _sizes(directory, "*.log*")
    names = sorted(name for name in sizes if name.endswith(_SUFFIX))
    return LocalLogFiles(
        base_offsets=tuple(int(name.removesuffix(_SUFFIX)) for name in names),
        segment_bytes=tuple(sizes[name] for name in names),
        deleted_bytes=sum(size for name, size in sizes.items() if name not in names),
    )


def stored_log_sizes(store: Path) -> tuple[int, ...]:
    """The sizes of all stored segments."""
    return tuple(_sizes(store, "*/*/*.log").values())


def _sizes(directory: Path, pattern: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in directory.glob(pattern):
        try:
            found[path.name] = path.stat().st_size
        except FileNotFoundError:  # deleted since it was listed
            continue
    return found
