"""Keeps the originals of tiered topics in the store, in addition to the metadata topic.

`rlm topic disable` and `rlm uninstall` restore the originals from the metadata topic. If that topic
were lost, the brokers' retention would stay at -1 and nobody would know the originals. So managers
keep a copy in the store. They delete it when the policy is DISABLED or the topic is deleted. A
missing policy deletes nothing, because a lost metadata topic looks the same.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from uuid import UUID

from rlm.broker.spi import Broker
from rlm.policy.topic.topic_policy import RETENTION_CONFIGS, are_all_lifted
from rlm.tasks.context.log_once import LogOnce
from rlmm.events.policy import PolicyState, TopicPolicy, topic_policies
from rlmm.spi import RemoteLogMetadataManager
from rsm.layout.originals import (
    OriginalSettings,
    OriginalsKey,
    OriginalsKeys,
    decode_originals,
    encode_originals,
)
from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.local_segment import BytesSource
from rsm.segment.log_line import LogLine
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkInfo, ChunkStorage

_log = logging.getLogger(__name__)

# Real originals have less than 1 KiB: a topic's name and a few numbers.
_ORIGINALS_MAX_BYTES = 64 << 10
_AMOUNT = re.compile("-?[0-9]{1,19}")


class StoredOriginals:
    """Represents the originals in a store. Thread-safety and errors are those of the store."""

    def __init__(self, storage: ChunkStorage, keys: OriginalsKeys) -> None:
        self._storage = storage
        self._keys = keys

    def all(self) -> Mapping[UUID, OriginalSettings]:
        """Return the newest originals of each topic, by topic id; skip unreadable ones."""
        newest = {key.topic_id: (key, info) for key, info in self._listed(self._keys.of_all)}
        found = {}
        for topic_id, (key, info) in newest.items():
            try:
                found[topic_id] = self._read(key, info)
            except (CorruptError, UnsupportedError) as error:
                _log.warning(LogLine("skipped a topic's own retention in the store", error=error))
        return found

    def of_topic(self, topic: str, topic_id: UUID) -> OriginalSettings | None:
        """Return the newest originals of one topic; None if the store has none."""
        found = self._listed(self._keys.of_topic(topic, topic_id))
        return self._read(*found[-1]) if found else None

    def keep(self, settings: OriginalSettings) -> None:
        """Store these originals; idempotent.

        Values that are all -1 do not replace a stored copy: while a copy is stored, the topic's
        retention has not been restored, so `rlm` set each -1. Other values replace a copy that
        differs or is corrupt. Raises AlreadyExistsError if another process stores a copy at the
        same time, and UnsupportedError if the copy has a newer format.
        """
        found = self._listed(self._keys.of_topic(settings.topic, settings.topic_id))
        if found and (are_all_lifted(settings.values) or self._has(*found[-1], settings)):
            return
        number = found[-1][0].number + 1 if found else 0
        key = OriginalsKey(topic=settings.topic, topic_id=settings.topic_id, number=number)
        content = BytesSource(content=encode_originals(settings))
        self._storage.create_with_content(self._keys.build(key), content)

    def drop(self, topic: str, topic_id: UUID) -> None:
        """Delete all originals of a topic from the store; idempotent."""
        found = self._listed(self._keys.of_topic(topic, topic_id))
        for outcome in self._storage.delete_many([info.name for _, info in found]):
            if outcome.error is not None:
                raise outcome.error

    def _listed(self, prefix: str) -> list[tuple[OriginalsKey, ChunkInfo]]:
        """Return the stored originals under a prefix, those of one topic in numerical order."""
        named = ((self._keys.parse(info.name), info) for info in self._storage.list(prefix))
        return [(key, info) for key, info in named if key is not None]

    def _has(self, key: OriginalsKey, info: ChunkInfo, settings: OriginalSettings) -> bool:
        try:
            return self._read(key, info).values == settings.values
        except CorruptError as error:
            _log.warning(LogLine("replacing a topic's corrupt retention in the store", error=error))
            return False

    def _read(self, key: OriginalsKey, info: ChunkInfo) -> OriginalSettings:
        """Return the originals. Raises CorruptError if they are not the retention of this topic.

        Does not read an object that is too large.
        """
        if info.length_bytes > _ORIGINALS_MAX_BYTES:
            raise CorruptError(
                "cannot read the stored originals: the object is too large",
                name=info.name,
                length_bytes=info.length_bytes,
                max_bytes=_ORIGINALS_MAX_BYTES,
            )
        whole = ByteRange(start_position=0, end_position=info.length_bytes)
        found = decode_originals(self._storage.read_range(info.name, whole))
        is_of_topic = (found.topic, found.topic_id) == (key.topic, key.topic_id)
        if not is_of_topic or not all(_is_retention(*each) for each in found.values.items()):
            raise CorruptError(
                "the stored originals are invalid: they must be retention settings of this topic",
                name=info.name,
            )
        return found


def _is_retention(name: str, value: str | None) -> bool:
    return name in RETENTION_CONFIGS and (value is None or _AMOUNT.fullmatch(value) is not None)


def drop_ended(stored: StoredOriginals, topic: str, topic_id: UUID) -> None:
    """Delete the originals of a topic that has its own retention again; log errors."""
    try:
        stored.drop(topic, topic_id)
    except TieredStorageError as error:
        _log.warning(
            LogLine(
                "cannot delete a topic's own retention from the store",
                topic=topic,
                topic_id=topic_id,
                error=error,
                advice="If you tier the topic again, check its retention first",
            )
        )


class OriginalsMirror:
    """Keeps the copies in the store as the policies require. Not thread-safe.

    Every manager whose broker leads a partition of the topic writes the copy, once per change, so
    that a stopped manager does not prevent it. Memory: two entries per tiered topic.
    """

    def __init__(
        self, stored: StoredOriginals, *, metadata: RemoteLogMetadataManager, broker: Broker
    ) -> None:
        self._stored = stored
        self._metadata = metadata
        self._broker = broker
        self._mirrored: dict[UUID, OriginalSettings | None] = {}
        self._log_once = LogOnce()

    def step(self) -> None:
        """Write changes. Raises the errors of the store and the broker; the next call tries again.

        Logs a topic whose copy has a newer format, and continues with the other topics.
        """
        known = {each.topic_id: each for each in topic_policies(self._metadata)}
        self._log_once.retain(known)
        self._mirrored = {each: self._mirrored[each] for each in self._mirrored.keys() & known}
        policies = [
            each
            for each in known.values()
            if each.topic_id not in self._mirrored
            or self._mirrored[each.topic_id] != _settings_of(each)
        ]
        if not policies:
            return
        led = {tip.topic_id for tip in self._broker.leadership({each.topic for each in policies})}
        for policy in policies:
            # This manager corrects what it wrote itself, even if it no longer leads a partition.
            if policy.topic_id in led or policy.topic_id in self._mirrored:
                try:
                    self._mirror(policy)
                except AlreadyExistsError:
                    continue  # Another manager stored a copy. The next call reads it.
                except UnsupportedError as error:
                    self._log_unsupported(policy, error)

    def _log_unsupported(self, policy: TopicPolicy, error: UnsupportedError) -> None:
        if self._log_once.changed(policy.topic_id, str(error)):
            _log.warning(
                LogLine(
                    "cannot store a topic's own retention: a newer version has stored it",
                    topic=policy.topic,
                    topic_id=policy.topic_id,
                    error=error,
                    advice="Run the same version of `rlm` on all hosts",
                )
            )

    def _mirror(self, policy: TopicPolicy) -> None:
        settings = _settings_of(policy)
        fields = {"topic": policy.topic, "topic_id": policy.topic_id, "state": policy.state.name}
        if settings is None:
            self._stored.drop(policy.topic, policy.topic_id)
            _log.info(LogLine("removed a topic's own retention from the store", **fields))
        else:
            self._stored.keep(settings)
            originals = dict(settings.values)
            _log.info(LogLine("stored a topic's own retention", originals=originals, **fields))
        self._mirrored[policy.topic_id] = settings


def _settings_of(policy: TopicPolicy) -> OriginalSettings | None:
    """Return the originals to store for a topic; None if its own retention is restored."""
    if policy.state is PolicyState.DISABLED:
        return None
    return OriginalSettings(
        topic=policy.topic,
        topic_id=policy.topic_id,
        values={each.name: each.value for each in policy.originals},
    )
