"""Bytes into memory that is there already."""

from __future__ import annotations

_STEP_BYTES = 1 << 20  # copying at once would keep all other threads waiting


def copy_into(target: memoryview, content: bytes) -> int:
    """Copy `content` to the beginning of `target`, which has room for it; how many bytes."""
    source = memoryview(content)
    for start in range(0, len(source), _STEP_BYTES):
        step = source[start : start + _STEP_BYTES]
        target[start : start + len(step)] = step
    return len(source)
