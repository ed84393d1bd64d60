"""The page about block_v2: its example of the LedgerOffloader is run, over several objects."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_PAGE = Path(__file__).resolve().parents[4] / "docs" / "formats" / "block_v2.md"
_BEFORE = """
from uuid import uuid4
from rsm.layout.block_v2.offload_context import OffloadContext, OffloadSegment
from rsm.pulsar.offload_handle import StreamingLimits
from rsm.pulsar.offloader import open_offloader
from rsm.storage.memory import MemoryChunkStorage
from rsm.system_clock import SystemClock
storage = MemoryChunkStorage(wall_ms=SystemClock().wall_ms)
entries = [(17, entry_id, bytes(100)) for entry_id in range(300)]
"""
_AFTER = "\nprint(len(stored), list(storage.list('')))"


def test_example_when_objects_become_full_then_prints_the_entries_and_leaves_no_object() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    small = code.replace("block_bytes=5 << 20", "block_bytes=1_000, segment_bytes=8_000")
    assert small != code

    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + small + _AFTER],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )

    *printed, last = done.stdout.splitlines()
    assert printed == [f"{entry_id} 100" for entry_id in range(100, 200)]
    assert last == "6 []"
