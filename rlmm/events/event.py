"""What all events of the metadata topic have. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The value of one record of the metadata topic. Each record has its own `event_id`."""

    event_id: UUID
