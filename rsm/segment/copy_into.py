"""Copies bytes into existing memory, without long pauses for other threads."""

from __future__ import annotations

_STEP_BYTES = 1 << 20  # A larger copy would block the other threads for too long.


def copy_into(target: memoryview, content: bytes) -> int:
    """Copy `content` to the start of a large enough `target`; return the length of `content`."""
    source = memoryview(content)
    for start in range(0, len(source), _STEP_BYTES):
        step = source[start : start + _STEP_BYTES]
        target[start : start + len(step)] = step
    return len(source)
