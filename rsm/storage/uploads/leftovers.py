"""Decides which unfinished files of a directory store or HDFS are leftovers of dead writers. Pure.

A file that was not written recently may still have a writer: a stream may wait a week for its next
record. So up to WRITTEN_MAX_AGE_MS, a file is a leftover only if its writer is known to be gone.
"""

from __future__ import annotations

from collections.abc import Callable

from rsm.segment.offload_settings import OFFLOAD_SEGMENT_LONGEST_MS

IDLE_MAX_AGE_MS = 3_600_000

# Adds a day to the longest duration of a stream, for its last write.
WRITTEN_MAX_AGE_MS = OFFLOAD_SEGMENT_LONGEST_MS + 86_400_000


def is_leftover(age_ms: int, idle_max_age_ms: int, *, may_have_writer: Callable[[], bool]) -> bool:
    """Return whether a file of this age since its last write may be removed.

    Calls `may_have_writer` only if the age alone does not decide.
    """
    if age_ms <= idle_max_age_ms:
        return False
    return age_ms > WRITTEN_MAX_AGE_MS or not may_have_writer()
