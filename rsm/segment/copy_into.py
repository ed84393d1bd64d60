"""Copies bytes into existing memory."""

from __future__ import annotations

_STEP_BYTES = 1 << 20  # a larger copy would block all other threads for too long


def copy_into(target: memoryview, content: bytes) -> int:
    """Copy `content` to the beginning of `target`, which is large enough; return its length."""
    source = memoryview(content)
    for start in range(0, len(source), _STEP_BYTES):
        step = source[start : start + _STEP_BYTES]
        target[start : start + len(step)] = step
    return len(source)
