"""Makes the operating system refuse to start threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_thread_starts() -> Iterator[None]:
    """Make the start of threads fail: the system has no memory for so large a stack."""
    default_bytes = threading.stack_size(1 << 46)
    try:
        yield
    finally:
        threading.stack_size(default_bytes)
