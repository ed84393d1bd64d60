"""The umask of a process: what it creates is nothing for other users of the host.

RocksDB and other libraries make files with the permissions that the umask leaves. The metadata
names topics and objects, and holds secrets of the cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_OTHERS = 0o027


@contextmanager
def restricted_umask() -> Iterator[None]:
    """Until the block ends, files are made with 0640 and directories with 0750 at most.

    An umask that takes more stays as it is. Of the whole process: main thread, before others run.
    """
    before = os.umask(_OTHERS)
    os.umask(before | _OTHERS)
    try:
        yield
    finally:
        os.umask(before)
