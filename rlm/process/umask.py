"""Restricts a process's umask: other users of the host cannot access what it creates.

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
    """Create files with 0640 and directories with 0750 at most, until the block ends.

    A stricter umask stays. Affects the whole process: use it in the main thread, before other
    threads start.
    """
    before = os.umask(_OTHERS)
    os.umask(before | _OTHERS)
    try:
        yield
    finally:
        os.umask(before)
