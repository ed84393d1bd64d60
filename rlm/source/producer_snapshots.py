"""Reads the producer snapshot of a rolled segment: the state of all producers at its end.

Waits for the file if necessary. It is named after the next segment's base offset. The broker writes
it in place after it has started that segment, so a reader may find no file, or half of it.
Source: KIP-405; org.apache.kafka.storage.internals.log.ProducerStateManager.
"""

from __future__ import annotations

import logging

from rlm.source.partition_files import PRODUCER_SNAPSHOT_SUFFIX, PartitionFiles, read_or_none
from rsm.segment.clock import Clock
from rsm.segment.log_line import LogLine
from rsm.segment.producer_snapshot import is_whole_snapshot

# This bounds memory, and suffices for over a million producers.
MAX_SNAPSHOT_BYTES = 64 << 20
_ATTEMPTS = 10
_PAUSE_MS = 20

_log = logging.getLogger(__name__)


def read_producer_snapshot(files: PartitionFiles, end_offset: int, clock: Clock) -> bytes | None:
    """Read the snapshot at `end_offset`, the base of the next segment.

    Returns None if there is no whole snapshot: a leader that is restored without it rebuilds the
    state from the log. Waits, for at most 0.2 s, only if the segment is the newest rolled one.
    """
    path = files.path(end_offset, PRODUCER_SNAPSHOT_SUFFIX)
    may_be_in_writing = files.next_base_offset(end_offset) is None
    for attempt in range(_ATTEMPTS if may_be_in_writing else 1):
        if attempt:
            clock.sleep_ms(_PAUSE_MS)
        content = read_or_none(path, max_bytes=MAX_SNAPSHOT_BYTES + 1)
        if content is not None and is_whole_snapshot(content):
            return content
    _log.info(LogLine("producer snapshot is missing or incomplete: recorded as absent", path=path))
    return None
