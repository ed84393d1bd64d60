"""Reads the last policy level from a configuration: what managers give topics.

Managers also register it, so that `rlm status` finds hosts whose files differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from rlm.config.deleting import DeletingConfig
from rlm.config.load import Config
from rlm.config.offloading import OffloadingConfig, TopicDefaultsConfig
from rlm.policy.topic.policy_values import FileDefaults
from rlmm.events.policy import CopyLagSince, OutagePolicy, PolicySetting
from rlmm.events.policy_level import SettingValue
from rlmm.events.registration import FileDefault
from rsm.config.choices import Layout
from rsm.config.section import Section, keys_of, parse_section
from rsm.config.storage import StorageConfig

_OUTAGES = {"hold": OutagePolicy.HOLD, "shed": OutagePolicy.SHED_OLDEST}
_FIELDS: tuple[tuple[type[Section], str], ...] = (
    (DeletingConfig, "trim_lag_ms"),
    (OffloadingConfig, "mode"),
    (OffloadingConfig, "segment_max_bytes"),
    (OffloadingConfig, "segment_rollover_ms"),
    (StorageConfig, "layouts"),
    *((TopicDefaultsConfig, name) for name in TopicDefaultsConfig.model_fields),
)
"""The fields that decide for topics without a setting of their own."""


def file_defaults(
    offloading: OffloadingConfig, storage: StorageConfig | None, topics: TopicDefaultsConfig
) -> FileDefaults:
    """Return what the file gives topics. Without `storage`, the layouts are not known."""
    return FileDefaults(
        offload=offloading.settings(),
        stream_buffer_bytes=offloading.stream_buffer_bytes,
        layouts=None if storage is None else _layouts(storage),
        values=_values(topics),
    )


def _values(topics: TopicDefaultsConfig) -> Mapping[PolicySetting, SettingValue]:
    since, outage = topics.copy_lag_since, topics.outage_policy
    found: Mapping[PolicySetting, SettingValue | None] = {
        PolicySetting.RETENTION_MS: topics.retention_ms,
        PolicySetting.RETENTION_BYTES: topics.retention_bytes,
        PolicySetting.LOCAL_RETENTION_MS: topics.local_retention_ms,
        PolicySetting.LOCAL_RETENTION_BYTES: topics.local_retention_bytes,
        PolicySetting.COPY_LAG_MS: topics.copy_lag_ms,
        PolicySetting.COPY_LAG_BYTES: topics.copy_lag_bytes,
        PolicySetting.COPY_LAG_SINCE: None if since is None else CopyLagSince[since.upper()],
        PolicySetting.OUTAGE_POLICY: None if outage is None else _OUTAGES[outage],
    }
    return {setting: value for setting, value in found.items() if value is not None}


def _layouts(storage: StorageConfig) -> tuple[str, ...]:
    """Return the layouts in which new segments can be written, the configured ones first."""
    segments = storage.segments()
    if segments.manager is not None:
        return ()
    configured = [
        each if isinstance(each, str) else str(each.class_name) for each in segments.layouts
    ]
    return tuple(dict.fromkeys([*configured, *(each.value for each in Layout)]))


def registered_defaults(config: Config) -> tuple[FileDefault, ...]:
    """Return each key that gives topics a setting, with its text as in the file."""
    sections: tuple[Section, ...] = (
        config.deleting,
        config.offloading,
        config.storage,
        config.topic_defaults,
    )
    of_type = {type(each): each for each in sections}
    return tuple(
        FileDefault(
            key=str(section.model_fields[name].validation_alias),
            value=_text(getattr(of_type[section], name)),
        )
        for section, name in _FIELDS
    )


def _text(value: object) -> str | None:
    """Return a value as a file has it; None for a key without one."""
    if isinstance(value, tuple):
        return ",".join(str(_text(each)) for each in value)
    if isinstance(value, Enum):
        return str(value.value)
    return None if value is None else str(value)


def registered_topic_defaults(defaults: Iterable[FileDefault]) -> TopicDefaultsConfig:
    """Return what a manager's file gives topics, from its registration. InvalidConfigError."""
    keys = set(keys_of(TopicDefaultsConfig))
    given = {each.key: each.value for each in defaults if each.value is not None}
    return parse_section(
        TopicDefaultsConfig, {key: value for key, value in given.items() if key in keys}
    )
