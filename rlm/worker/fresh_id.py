"""Creates ids as Kafka does (org.apache.kafka.common.Uuid.randomUuid)."""

from __future__ import annotations

from uuid import UUID, uuid4

from rsm.segment.ids import id_to_text


def fresh_id() -> UUID:
    """Return a random id whose text does not begin with `-`, which would look like an option."""
    while id_to_text(made := uuid4()).startswith("-"):
        pass
    return made
