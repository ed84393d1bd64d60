"""What a gateway counts: ends of connections by reason, remote partitions of fetches by outcome."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from rlm.gateway.close_reason import CloseReason


class RemoteCount(Enum):
    """What became of a partition that was to be read from the store."""

    SERVED = "served"
    READING = "reading"
    OUT_OF_RANGE = "out_of_range"
    DIVERGING = "diverging"
    STORAGE_ERROR = "storage_error"


@dataclass(slots=True)
class GatewayCounts:
    """Written by the gateway's loop alone; any thread may read."""

    connections: int = 0
    closed: Counter[CloseReason] = field(default_factory=Counter)
    remote: Counter[RemoteCount] = field(default_factory=Counter)
    remote_bytes: int = 0
