"""Stored segments that turned out to be missing or corrupt: counted, and told once each."""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping
from enum import Enum

from rsm.segment.errors import CorruptError, NotFoundError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import RemoteLogSegmentMetadata

_log = logging.getLogger(__name__)

_REMEMBERED_COUNT = 1_000


class AnomalyKind(Enum):
    """What is wrong with a segment that is recorded as stored."""

    MISSING = "missing"
    CORRUPT = "corrupt"


class ReadAnomalies:
    """Counts every read that failed on a segment, logs each segment's first. Thread-safe.

    Memory: the ids of the last thousand segments that were logged.
    """

    def __init__(self) -> None:
        self._counts: Counter[AnomalyKind] = Counter()
        self._told: OrderedDict[tuple[RemoteLogSegmentId, AnomalyKind], None] = OrderedDict()
        self._lock = threading.Lock()

    def record(
        self, metadata: RemoteLogSegmentMetadata, error: NotFoundError | CorruptError
    ) -> None:
        kind = AnomalyKind.CORRUPT if isinstance(error, CorruptError) else AnomalyKind.MISSING
        subject = (metadata.segment_id, kind)
        with self._lock:
            self._counts[kind] += 1
            if subject in self._told:
                return
            self._told[subject] = None
            if len(self._told) > _REMEMBERED_COUNT:
                self._told.popitem(last=False)
        _log.error(
            "a stored segment can't be served segment_id=%s offsets=%s objects=%s anomaly=%s "
            "error=%s",
            metadata.segment_id,
            metadata.offsets,
            ",".join(stored.key for stored in metadata.objects),
            kind.value,
            error,
        )

    def counts(self) -> Mapping[AnomalyKind, int]:
        """Failed reads so far, by kind."""
        with self._lock:
            return dict(self._counts)
