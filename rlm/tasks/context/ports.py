"""Groups the external systems of tasks, so that a test can replace them with one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from rlm.broker.dead_letters.dead_letter_topic import DeadLetterTopic
from rlm.broker.groups.share_groups import ShareGroups
from rlm.broker.spi import Broker
from rlm.source.log_source import LogSource
from rlm.tasks.context.store_witness import StoreWitness
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.spi import RemoteStorageManager


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Represents the broker, its disk, the store, the metadata, the dead letters and the clock.

    `share_groups` covers the share groups of the whole cluster. `new_id` returns a new id. If
    `witness` is None, tasks accept any store.
    """

    broker: Broker
    source: LogSource
    storage: RemoteStorageManager
    metadata: RemoteLogMetadataManager
    dead_letters: DeadLetterTopic
    share_groups: ShareGroups
    clock: Clock
    new_id: Callable[[], UUID]
    witness: StoreWitness | None = None
