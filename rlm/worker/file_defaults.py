"""Reads the least specific policy level from a configuration: the settings that files give topics.

Managers also register these settings, so that `rlm status` finds hosts whose files differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TypeVar

from rlm.config.deleting import DeletingConfig
from rlm.config.load import CommandConfig, Config
from rlm.config.offloading import OffloadingConfig, TopicDefaultsConfig
from rlm.policy.topic.policy_values import FileDefaults
from rlmm.events.policy import CopyLagSince, OutagePolicy, PolicySetting
from rlmm.events.policy_level import SettingValue
from rlmm.events.registration import FileDefault
from rsm.config.choices import Layout
from rsm.config.section import Section, keys_of, parse_section
from rsm.config.storage import LAYOUT_KEY, StorageConfig
from rsm.config.values import split_list
from rsm.plugins.plugin import ClassName

_OUTAGES = {"hold": OutagePolicy.HOLD, "shed": OutagePolicy.SHED_OLDEST}
_FIELDS: tuple[tuple[type[Section], str], ...] = (
    (DeletingConfig, "trim_lag_ms"),
    (OffloadingConfig, "mode"),
    (OffloadingConfig, "segment_max_bytes"),
    (OffloadingConfig, "segment_rollover_ms"),
    (OffloadingConfig, "stream_buffer_bytes"),
    *((TopicDefaultsConfig, name) for name in TopicDefaultsConfig.model_fields),
)
"""The fields that managers register, in addition to the layouts.

A topic inherits each setting, unless a more specific level sets it. `stream_buffer_bytes` is not a
setting of topics.
"""

_SectionT = TypeVar("_SectionT", bound=Section)


def file_defaults(config: Config | CommandConfig) -> FileDefaults:
    """Return the settings that the file gives topics; its `layouts` are None if it has no store."""
    return FileDefaults(
        offload=config.offloading.settings(),
        deletion_lag_ms=config.deleting.trim_lag_ms,
        stream_buffer_bytes=config.offloading.stream_buffer_bytes,
        layouts=None if config.storage is None else _writable(_configured_layouts(config.storage)),
        values=_values(config.topic_defaults),
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


def _configured_layouts(storage: StorageConfig) -> tuple[str, ...]:
    """Return the layouts in the file; none if a plug-in replaces the whole storage manager."""
    if isinstance(storage.storage_manager, ClassName):
        return ()
    return tuple(str(_text(each)) for each in storage.layouts)


def _writable(configured: Sequence[str]) -> tuple[str, ...]:
    """Return the layouts in which new segments can be written, configured layouts first."""
    if not configured:
        return ()
    return tuple(dict.fromkeys([*configured, *(each.value for each in Layout)]))


def registered_defaults(config: Config) -> tuple[FileDefault, ...]:
    """Return each key that gives topics a setting, with its value as text."""
    sections: tuple[Section, ...] = (config.deleting, config.offloading, config.topic_defaults)
    of_type = {type(each): each for each in sections}
    layouts = ",".join(_configured_layouts(config.storage))
    return (
        *(
            FileDefault(
                key=str(section.model_fields[name].validation_alias),
                value=_text(getattr(of_type[section], name)),
            )
            for section, name in _FIELDS
        ),
        FileDefault(key=LAYOUT_KEY, value=layouts or None),
    )


def _text(value: object) -> str | None:
    """Return a value as a file spells it; None if the key has no value."""
    if isinstance(value, Enum):
        return str(value.value)
    return None if value is None else str(value)


def read_registered(defaults: Iterable[FileDefault]) -> FileDefaults:
    """Return the settings that a manager's file gives topics, from the manager's registration.

    Uses the built-in default of each key that the manager did not register. Raises
    InvalidConfigError if a value is invalid.
    """
    given = {each.key: each.value for each in defaults if each.value is not None}
    offloading = _parsed(OffloadingConfig, given)
    return FileDefaults(
        offload=offloading.settings(),
        stream_buffer_bytes=offloading.stream_buffer_bytes,
        deletion_lag_ms=_parsed(DeletingConfig, given).trim_lag_ms,
        layouts=_writable(split_list(given.get(LAYOUT_KEY, ""))),
        values=_values(_parsed(TopicDefaultsConfig, given)),
    )


def _parsed(section: type[_SectionT], given: Mapping[str, str]) -> _SectionT:
    keys = set(keys_of(section))
    return parse_section(section, {key: value for key, value in given.items() if key in keys})
