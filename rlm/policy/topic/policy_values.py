"""Checks the values of a policy, as Kafka checks its configurations. Pure.

Sources: KIP-405 for retentions (LogConfig.validateValues), KIP-1241 for copy lags. PIP-17's
`offloadTimeInMinutes` (counted from the roll) and `offloadSizeInMB` are these lags in other units.
A segment must be stored before it expires. It must not wait longer than local retention keeps it.
The same applies to streamed data (PIP-76), which waits up to the rollover time of its offload
segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlm.facts.topic_configs import MAX_MESSAGE_BYTES, RETENTION_BYTES, RETENTION_MS
from rlmm.events.policy import (
    AS_MANAGERS_SETTING,
    AS_TOTAL_RETENTION,
    UNLIMITED,
    PolicySetting,
    TopicPolicy,
)
from rlmm.events.policy_level import SettingValue
from rsm.segment.errors import InvalidConfigError
from rsm.segment.offload_settings import (
    OFFLOAD_SEGMENT_GREATEST_BYTES,
    OFFLOAD_SEGMENT_LEAST_BYTES,
    OFFLOAD_SEGMENT_LONGEST_MS,
    OFFLOAD_SEGMENT_SHORTEST_MS,
    OffloadMode,
    OffloadSettings,
)

COPY_LAG_MS = "remote.copy.lag.ms"
COPY_LAG_BYTES = "remote.copy.lag.bytes"
TRIM_MIN_AGE_MS = "remote.local.trim.min.age.ms"
DELETION_LAG_MS = "local.deletion.lag.ms"

OFFLOAD_MODE = "offload.mode"
OFFLOAD_SEGMENT_BYTES = "max.size.per.offload.segment.bytes"
OFFLOAD_ROLLOVER_MS = "max.offload.segment.rollover.time.ms"
LAYOUT = "layout"
LAYOUT_KEY = "rsm.config.layout"

STREAM_BUFFER_BYTES = "offload.stream.buffer.bytes"
_MAX_VALUE = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDefaults:
    """Represents what the managers' configuration file gives topics: the last policy level.

    `offload`, the deletion lag and the first of `layouts` apply to topics without their own value.
    `layouts` are the names of all layouts that a manager can write: built-in names, and classes of
    plug-ins; None if they are not known. `values` are the other settings that the file gives. All
    streams of a manager share `stream_buffer_bytes`.
    """

    offload: OffloadSettings = field(default_factory=OffloadSettings)
    deletion_lag_ms: int = 0
    stream_buffer_bytes: int = 256 << 20
    layouts: tuple[str, ...] | None = None
    values: Mapping[PolicySetting, SettingValue] = field(default_factory=dict)

    @property
    def settings(self) -> Mapping[PolicySetting, SettingValue]:
        """Return all settings that the file gives topics, in the form of the other levels."""
        found: dict[PolicySetting, SettingValue] = {
            **self.values,
            PolicySetting.LOCAL_DELETION_LAG_MS: self.deletion_lag_ms,
            PolicySetting.OFFLOAD_MODE: self.offload.mode,
            PolicySetting.OFFLOAD_SEGMENT_MAX_BYTES: self.offload.segment_max_bytes,
            PolicySetting.OFFLOAD_SEGMENT_ROLLOVER_MS: self.offload.segment_rollover_ms,
        }
        if self.layouts:
            found[PolicySetting.LAYOUT] = self.layouts[0]
        return found


def check_values(policy: TopicPolicy, managers: OffloadSettings) -> None:
    """Raise InvalidConfigError with the rule and the values if the values break a rule.

    Checks ranges, and values that contradict each other. `managers` applies where the policy has no
    offload settings.
    """
    check_limits(policy)
    if policy.effective_copy_lag_ms < 0 and policy.effective_copy_lag_bytes < 0:
        raise InvalidConfigError(
            "the copy lags are invalid: nothing would ever be copied",
            topic=policy.topic,
            rule=f"{COPY_LAG_MS} or {COPY_LAG_BYTES} is limited; -1 means the local retention",
            **{COPY_LAG_MS: policy.copy_lag_ms, COPY_LAG_BYTES: policy.copy_lag_bytes},
            advice=f"Limit {COPY_LAG_MS}, {COPY_LAG_BYTES} or local retention",
        )
    _check_offload(policy, managers)


def check_limits(policy: TopicPolicy) -> None:
    """Raise InvalidConfigError if retentions or lags are out of range or contradict each other."""
    _check_retention(
        policy, RETENTION_MS, total=policy.retention_ms, local=policy.local_retention_ms
    )
    _check_retention(
        policy, RETENTION_BYTES, total=policy.retention_bytes, local=policy.local_retention_bytes
    )
    _check_lag(
        policy,
        (COPY_LAG_MS, policy.copy_lag_ms),
        local=(f"local.{RETENTION_MS}", policy.effective_local_retention_ms),
        total=(RETENTION_MS, policy.retention_ms),
    )
    _check_lag(
        policy,
        (COPY_LAG_BYTES, policy.copy_lag_bytes),
        local=(f"local.{RETENTION_BYTES}", policy.effective_local_retention_bytes),
        total=(RETENTION_BYTES, policy.retention_bytes),
    )
    _check_range(
        policy.topic, DELETION_LAG_MS, policy.local_deletion_lag_ms, least=AS_MANAGERS_SETTING
    )


def check_stream_buffer(
    policy: TopicPolicy, managers: FileDefaults, *, batch_max_bytes: int | None
) -> None:
    """Raise InvalidConfigError if a batch of a streamed topic can exceed the managers' buffer.

    `batch_max_bytes` is the topic's `max.message.bytes`; None if the broker does not report it.
    """
    if policy.effective_offload(managers.offload).mode is not OffloadMode.STREAM:
        return
    if batch_max_bytes is not None and batch_max_bytes > managers.stream_buffer_bytes:
        raise InvalidConfigError(
            "cannot stream the topic: one of its batches can exceed the stream buffer",
            topic=policy.topic,
            rule=f"{MAX_MESSAGE_BYTES} <= {STREAM_BUFFER_BYTES}",
            **{
                MAX_MESSAGE_BYTES: batch_max_bytes,
                STREAM_BUFFER_BYTES: managers.stream_buffer_bytes,
            },
            advice=f"Lower {MAX_MESSAGE_BYTES} of the topic, or raise {STREAM_BUFFER_BYTES} "
            "in each manager's file",
        )


def check_layout(policy: TopicPolicy, managers: FileDefaults) -> None:
    """Raise InvalidConfigError if managers cannot write the topic's own layout."""
    layout, known = policy.layout, managers.layouts
    if layout is not None and known is not None and layout not in known:
        raise InvalidConfigError(
            "the managers cannot write the layout",
            topic=policy.topic,
            rule=f"a built-in layout, or a class in {LAYOUT_KEY} of each manager's file",
            layout=layout,
            known=",".join(known) or "none: the remote storage manager is a plug-in",
            advice=f"Choose a known layout, or add the class to {LAYOUT_KEY} in each manager's file"
            if known
            else "Remove the layout",
        )


def delayed_trim_note(policy: TopicPolicy, trim_min_age_ms: int) -> str | None:
    """Return a note if local data stays longer than the policy's local retention; else None.

    `trim_min_age_ms` is `remote.local.trim.min.age.ms`. Records younger than that may exceed any
    limit in bytes. So the note covers a local limit in bytes, unless it comes from the total
    retention.
    """
    local_ms, local_bytes = policy.effective_local_retention_ms, policy.local_retention_bytes
    if 0 <= local_ms < trim_min_age_ms:
        short = f"local.{RETENTION_MS}={local_ms}"
    elif local_bytes >= 0 and trim_min_age_ms > 0:
        short = f"local.{RETENTION_BYTES}={local_bytes}"
    else:
        return None
    return (
        f"{short} does not apply to records younger than {TRIM_MIN_AGE_MS}={trim_min_age_ms}. "
        "They stay on the broker, which needs them to recognize a producer's retries. "
        "Each manager applies its own value."
    )


def _check_retention(policy: TopicPolicy, name: str, *, total: int, local: int) -> None:
    local_name = f"local.{name}"
    _check_range(policy.topic, name, total, least=UNLIMITED)
    _check_range(policy.topic, local_name, local, least=AS_TOTAL_RETENTION)
    exceeds = local == UNLIMITED or local > total
    if total != UNLIMITED and local != AS_TOTAL_RETENTION and exceeds:
        raise InvalidConfigError(
            "the local retention is above the total retention",
            topic=policy.topic,
            rule=f"{local_name} <= {name}",
            **{local_name: local, name: total},
            advice=f"Lower {local_name}, or raise {name}",
        )


def _check_lag(
    policy: TopicPolicy, lag: tuple[str, int], *, local: tuple[str, int], total: tuple[str, int]
) -> None:
    name, value = lag
    _check_range(policy.topic, name, value, least=-1)
    if value <= 0:
        return
    if total[1] != UNLIMITED and value >= total[1]:
        raise InvalidConfigError(
            "the copy lag is not below the total retention",
            topic=policy.topic,
            rule=f"{name} < {total[0]}",
            **{name: value, total[0]: total[1]},
            advice=f"Lower {name}, or raise {total[0]}",
        )
    if local[1] != UNLIMITED and value > local[1]:
        raise InvalidConfigError(
            "the copy lag is above the local retention",
            topic=policy.topic,
            rule=f"{name} <= {local[0]}",
            **{name: value, local[0]: local[1]},
            advice=f"Lower {name}, or raise {local[0]}",
        )


def _check_offload(policy: TopicPolicy, managers: OffloadSettings) -> None:
    max_bytes, rollover_ms = policy.offload_segment_max_bytes, policy.offload_segment_rollover_ms
    if max_bytes != AS_MANAGERS_SETTING:
        _check_range(
            policy.topic,
            OFFLOAD_SEGMENT_BYTES,
            max_bytes,
            least=OFFLOAD_SEGMENT_LEAST_BYTES,
            most=OFFLOAD_SEGMENT_GREATEST_BYTES,
        )
    if rollover_ms != AS_MANAGERS_SETTING:
        _check_range(
            policy.topic,
            OFFLOAD_ROLLOVER_MS,
            rollover_ms,
            least=OFFLOAD_SEGMENT_SHORTEST_MS,
            most=OFFLOAD_SEGMENT_LONGEST_MS,
        )
    is_own = rollover_ms != AS_MANAGERS_SETTING
    if is_own or policy.effective_offload(managers).mode is OffloadMode.STREAM:
        _check_rollover(policy, rollover_ms if is_own else managers.segment_rollover_ms)


def _check_rollover(policy: TopicPolicy, rollover_ms: int) -> None:
    """Refuse a rollover time above the total retention or above the local retention.

    A local retention of 0 does not limit the rollover time: segments are trimmed once stored.
    """
    local_ms, total_ms = policy.effective_local_retention_ms, policy.retention_ms
    for kind, name, limit_ms in (
        ("total", RETENTION_MS, total_ms),
        ("local", f"local.{RETENTION_MS}", local_ms or UNLIMITED),
    ):
        if limit_ms != UNLIMITED and rollover_ms > limit_ms:
            raise InvalidConfigError(
                f"the rollover time of offload segments is above the {kind} retention",
                topic=policy.topic,
                rule=f"{OFFLOAD_ROLLOVER_MS} <= {name}",
                **{OFFLOAD_ROLLOVER_MS: rollover_ms, name: limit_ms},
                advice=f"Lower {OFFLOAD_ROLLOVER_MS}, or raise {name}",
            )


def _check_range(topic: str, name: str, value: int, *, least: int, most: int = _MAX_VALUE) -> None:
    if not least <= value <= most:
        raise InvalidConfigError(
            f"{name} is invalid: the value is out of range",
            topic=topic,
            rule=f"{least} <= {name} <= {most}",
            found=value,
            advice=f"Give {name} a value in this range",
        )
