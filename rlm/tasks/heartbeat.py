"""Registers this process in the metadata topic, again and again, as long as it lives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from rlmm.events import AppliedPosition, ProcessRegistered, ProcessRole
from rlmm.spi import RemoteLogMetadataManager


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCard:
    """What a process says of itself; `gateway_address` is a gateway's."""

    process_id: UUID
    role: ProcessRole
    broker_id: int
    http_address: str
    heartbeat_interval_ms: int
    version: str
    gateway_address: str = ""


class Heartbeat:
    """Publishes a registration at each step."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        card: ProcessCard,
        new_id: Callable[[], UUID],
        applied: Callable[[], Mapping[int, int]] = dict,
    ) -> None:
        """`applied`: the next offset of each metadata partition, for processes that say so."""
        self._metadata = metadata
        self._card = card
        self._new_id = new_id
        self._applied = applied

    def step(self) -> None:
        """Register once. RetriableError if the topic can't be written."""
        card = self._card
        self._metadata.publish(
            ProcessRegistered(
                event_id=self._new_id(),
                process_id=card.process_id,
                role=card.role,
                broker_id=card.broker_id,
                http_address=card.http_address,
                heartbeat_interval_ms=card.heartbeat_interval_ms,
                version=card.version,
                gateway_address=card.gateway_address,
                applied=tuple(
                    AppliedPosition(partition=partition, offset=offset)
                    for partition, offset in sorted(self._applied().items())
                ),
            )
        )
