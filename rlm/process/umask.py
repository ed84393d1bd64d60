"""Restricts a process's umask, so that users outside of its group cannot access its new files.

RocksDB and other libraries create files with the permissions that the umask leaves. The metadata
names topics and objects, and contains the cluster's secrets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_OTHERS = 0o027


@contextmanager
def restricted_umask() -> Iterator[None]:
    """Limit new files to mode 0640 and new directories to 0750 until the context ends.

    Keeps a stricter umask. Affects the whole process: use it in the main thread, before other
    threads start.
    """
    before = os.umask(_OTHERS)
    os.umask(before | _OTHERS)
    try:
        yield
    finally:
        os.umask(before)
