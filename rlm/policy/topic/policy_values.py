"""Checks the values of a policy, as Kafka checks its own. Pure.

Sources: KIP-405 for retentions (LogConfig.validateValues), KIP-1241 for copy lags. PIP-17's
`offloadTimeInMinutes` (from the roll on) and `offloadSizeInMB` are the same lags in other units. A
segment must be stored before its retention expires it. It must not wait longer than local retention
keeps it.
"""

from __future__ import annotations

from rlm.broker.topics.topic_configs import RETENTION_BYTES, RETENTION_MS
from rlmm.events.policy import AS_MANAGERS_SETTING, AS_TOTAL_RETENTION, UNLIMITED, TopicPolicy
from rsm.segment.errors import InvalidConfigError

COPY_LAG_MS = "remote.copy.lag.ms"
COPY_LAG_BYTES = "remote.copy.lag.bytes"
TRIM_MIN_AGE_MS = "remote.local.trim.min.age.ms"
DELETION_LAG_MS = "local.deletion.lag.ms"

_MAX_VALUE = 2**63 - 1


def check_values(policy: TopicPolicy) -> None:
    """Raise InvalidConfigError with the rule and the values if the values contradict each other."""
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
    if policy.effective_copy_lag_ms < 0 and policy.effective_copy_lag_bytes < 0:
        raise InvalidConfigError(
            "nothing would ever be copied",
            topic=policy.topic,
            rule=f"{COPY_LAG_MS} or {COPY_LAG_BYTES} is a limit; -1 is local retention's",
            **{COPY_LAG_MS: policy.copy_lag_ms, COPY_LAG_BYTES: policy.copy_lag_bytes},
        )


def delayed_trim_note(policy: TopicPolicy, trim_min_age_ms: int) -> str | None:
    """Return a note if local data stays longer than the policy's local retention; else None.

    `trim_min_age_ms` is `remote.local.trim.min.age.ms`. The records of that time may exceed any
    limit in bytes. So the note covers only a limit that was set for the broker's disk alone.
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
        "They stay on the broker, because it recognizes a producer's retry by them. "
        "The managers' own configuration decides."
    )


def _check_retention(policy: TopicPolicy, name: str, *, total: int, local: int) -> None:
    local_name = f"local.{name}"
    _check_range(policy.topic, name, total, least=UNLIMITED)
    _check_range(policy.topic, local_name, local, least=AS_TOTAL_RETENTION)
    exceeds = local == UNLIMITED or local > total
    if total != UNLIMITED and local != AS_TOTAL_RETENTION and exceeds:
        raise InvalidConfigError(
            "local retention is above total retention",
            topic=policy.topic,
            rule=f"{local_name} <= {name}",
            **{local_name: local, name: total},
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
            "copy lag is not below total retention",
            topic=policy.topic,
            rule=f"{name} < {total[0]}",
            **{name: value, total[0]: total[1]},
        )
    if local[1] != UNLIMITED and value > local[1]:
        raise InvalidConfigError(
            "copy lag is above local retention",
            topic=policy.topic,
            rule=f"{name} <= {local[0]}",
            **{name: value, local[0]: local[1]},
        )


def _check_range(topic: str, name: str, value: int, *, least: int) -> None:
    if not least <= value <= _MAX_VALUE:
        raise InvalidConfigError(
            "value out of range",
            topic=topic,
            rule=f"{least} <= {name} <= {_MAX_VALUE}",
            found=value,
        )
