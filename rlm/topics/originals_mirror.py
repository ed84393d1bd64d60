"""Keeps what topics were before they were tiered in the store, too.

The metadata topic holds the originals that `rlm topic disable` and `rlm uninstall` restore. Should
that topic be lost, the brokers' retention would stay off, and nobody knew what it was; so managers
keep a copy in the store. A copy goes when the policy says that its topic is not tiered any more, or
when the topic is gone; never because there is no policy: that is how a lost metadata topic looks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from uuid import UUID

from rlm.broker.spi import Broker
from rlm.policy.topic.topic_policy import are_all_lifted
from rlmm.events.values import PolicyState, TopicPolicy
from rlmm.spi import RemoteLogMetadataManager
from rsm.layout.originals import (
    OriginalSettings,
    OriginalsKey,
    OriginalsKeys,
    decode_originals,
    encode_originals,
)
from rsm.segment.errors import AlreadyExistsError
from rsm.segment.local_segment import BytesSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkInfo, ChunkStorage

_log = logging.getLogger(__name__)


class StoredOriginals:
    """The originals that a store holds. Thread-safe as the store is; all raise as it does."""

    def __init__(self, storage: ChunkStorage, keys: OriginalsKeys) -> None:
        self._storage = storage
        self._keys = keys

    def all(self) -> Mapping[UUID, OriginalSettings]:
        """What holds of each topic, by its id."""
        newest = {key.topic_id: info for key, info in self._listed(self._keys.of_all)}
        return {topic_id: self._read(info) for topic_id, info in newest.items()}

    def of_topic(self, topic: str, topic_id: UUID) -> OriginalSettings | None:
        """What holds of one topic."""
        found = self._listed(self._keys.of_topic(topic, topic_id))
        return self._read(found[-1][1]) if found else None

    def keep(self, settings: OriginalSettings) -> None:
        """Have the store hold these; idempotent. AlreadyExistsError: somebody else is at it too.

        Values that are all -1 replace no others: as long as a copy is there its topic was not given
        back its own, so that -1 is ours.
        """
        found = self._listed(self._keys.of_topic(settings.topic, settings.topic_id))
        if found:
            known = self._read(found[-1][1])
            if known.values == settings.values or are_all_lifted(settings.values):
                return
        number = found[-1][0].number + 1 if found else 0
        key = OriginalsKey(topic=settings.topic, topic_id=settings.topic_id, number=number)
        content = BytesSource(content=encode_originals(settings))
        self._storage.create_with_content(self._keys.build(key), content)

    def drop(self, topic: str, topic_id: UUID) -> None:
        """Have the store hold nothing of a topic; idempotent."""
        found = self._listed(self._keys.of_topic(topic, topic_id))
        for outcome in self._storage.delete_many([info.name for _, info in found]):
            if outcome.error is not None:
                raise outcome.error

    def _listed(self, prefix: str) -> list[tuple[OriginalsKey, ChunkInfo]]:
        """The objects there, those of one topic ascending by their number."""
        named = ((self._keys.parse(info.name), info) for info in self._storage.list(prefix))
        return [(key, info) for key, info in named if key is not None]

    def _read(self, info: ChunkInfo) -> OriginalSettings:
        whole = ByteRange(start_position=0, end_position=info.length_bytes)
        return decode_originals(self._storage.read_range(info.name, whole))


class OriginalsMirror:
    """Keeps the store's copies as the policies say. One thread's.

    Done by every manager whose broker leads a partition of the topic, each change once: one that is
    down must not keep the others from it. Memory: one entry per tiered topic.
    """

    def __init__(
        self, stored: StoredOriginals, *, metadata: RemoteLogMetadataManager, broker: Broker
    ) -> None:
        self._stored = stored
        self._metadata = metadata
        self._broker = broker
        self._mirrored: dict[UUID, OriginalSettings | None] = {}

    def step(self) -> None:
        """Write what is new. Raises as the store and the broker do; then it is tried again."""
        policies = [
            each
            for each in self._metadata.topic_policies()
            if each.topic_id not in self._mirrored
            or self._mirrored[each.topic_id] != _settings_of(each)
        ]
        if not policies:
            return
        led = {tip.topic_id for tip in self._broker.leadership({each.topic for each in policies})}
        for policy in policies:
            # What we wrote ourselves is ours to mend, whoever leads by now.
            if policy.topic_id in led or policy.topic_id in self._mirrored:
                try:
                    self._mirror(policy)
                except AlreadyExistsError:
                    continue  # another manager's; what it wrote is looked at in the next step

    def _mirror(self, policy: TopicPolicy) -> None:
        settings = _settings_of(policy)
        if settings is None:
            self._stored.drop(policy.topic, policy.topic_id)
        else:
            self._stored.keep(settings)
        self._mirrored[policy.topic_id] = settings
        _log.info(
            "originals mirrored in the store",
            extra={
                "topic": policy.topic,
                "topic_id": policy.topic_id,
                "state": policy.state.name,
                "originals": None if settings is None else dict(settings.values),
            },
        )


def _settings_of(policy: TopicPolicy) -> OriginalSettings | None:
    """What the store is to hold of a topic; None: nothing, it has its own retention back."""
    if policy.state is PolicyState.DISABLED:
        return None
    return OriginalSettings(
        topic=policy.topic,
        topic_id=policy.topic_id,
        values={each.name: each.value for each in policy.originals},
    )
