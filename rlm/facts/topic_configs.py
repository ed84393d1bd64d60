"""Represents the settings of a topic that affect its data, as one broker reports them. Pure.

Source: KIP-133, and KIP-226 for the source of a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rsm.segment.errors import CorruptError

RETENTION_MS = "retention.ms"
RETENTION_BYTES = "retention.bytes"
CLEANUP_POLICY = "cleanup.policy"
REMOTE_STORAGE_ENABLE = "remote.storage.enable"
MAX_MESSAGE_BYTES = "max.message.bytes"
MESSAGE_FORMAT_VERSION = "message.format.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigValue:
    """Represents an effective setting. `is_override`: the topic sets it, so no default applies."""

    value: str
    is_override: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfigs:
    """Represents one broker's settings of a topic that affect the topic's data.

    A setting that the broker does not know has no entry.
    """

    topic: str
    entries: Mapping[str, ConfigValue]

    def override(self, key: str) -> str | None:
        """Return the topic's own value; None if the topic does not set the key."""
        entry = self.entries.get(key)
        return entry.value if entry is not None and entry.is_override else None

    @property
    def retention_ms(self) -> int:
        """Return the effective value; -1 is unlimited."""
        return self._number(RETENTION_MS)

    @property
    def retention_bytes(self) -> int:
        """Return the effective value for one partition; -1 is unlimited."""
        return self._number(RETENTION_BYTES)

    @property
    def cleanup_policy(self) -> frozenset[str]:
        """Return the effective policy: `delete`, `compact`, or both."""
        entry = self.entries.get(CLEANUP_POLICY)
        text = "" if entry is None else entry.value
        return frozenset(part.strip() for part in text.split(",") if part.strip())

    @property
    def remote_storage_enable(self) -> bool:
        """Return whether the topic uses Kafka's own tiered storage."""
        entry = self.entries.get(REMOTE_STORAGE_ENABLE)
        return entry is not None and entry.value.lower() == "true"

    @property
    def max_message_bytes(self) -> int | None:
        """Return the maximum size of a batch; None if the broker does not report it."""
        return self._number(MAX_MESSAGE_BYTES) if MAX_MESSAGE_BYTES in self.entries else None

    @property
    def message_format_version(self) -> str | None:
        """Return the version, such as 0.10.2-IV0; None if the broker does not report it."""
        entry = self.entries.get(MESSAGE_FORMAT_VERSION)
        return None if entry is None else entry.value

    def _number(self, key: str) -> int:
        entry = self.entries.get(key)
        try:
            return int("" if entry is None else entry.value)
        except ValueError as error:
            raise CorruptError(
                "the setting is invalid: the broker reports no number", topic=self.topic, key=key
            ) from error
