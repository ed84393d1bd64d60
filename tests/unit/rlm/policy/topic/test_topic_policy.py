from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.facts.topic_configs import ConfigValue, TopicConfigs
from rlm.policy.topic.policy_values import FileDefaults
from rlm.policy.topic.topic_policy import (
    INTERNAL_TOPICS,
    RETENTIONS,
    OffloadModeFlag,
    PolicyFlags,
    check_tierable,
    deletes_nothing,
    enabling_policy,
    untierable_reason,
)
from rlmm.events.policy import (
    CopyLagSince,
    OriginalConfig,
    PolicySetting,
    PolicyState,
    TopicPolicy,
)
from rlmm.events.policy_level import PolicyLevel
from rsm.segment.errors import InvalidConfigError

WEEK_MS = "604800000"
TOPIC_ID = UUID(int=7)
OWN_TOPICS = ("__remote_log_segment_metadata", "__remote_segments_to_be_deleted")


def configs(topic: str = "orders", **overrides: str) -> TopicConfigs:
    defaults = {
        "retention.ms": WEEK_MS,
        "retention.bytes": "-1",
        "cleanup.policy": "delete",
        "remote.storage.enable": "false",
        "message.format.version": "3.0-IV1",
    }
    given = {name.replace("_", "."): value for name, value in overrides.items()}
    entries = {
        name: ConfigValue(value=given.get(name, default), is_override=name in given)
        for name, default in defaults.items()
    }
    return TopicConfigs(topic=topic, entries=entries)


LIFTED = configs(retention_ms="-1", retention_bytes="-1")


def enabled(
    current: TopicPolicy | None = None,
    found: TopicConfigs | None = None,
    **flags: int,
) -> TopicPolicy:
    return enabling_policy(
        topic="orders",
        topic_id=TOPIC_ID,
        current=current,
        flags=PolicyFlags(**flags),  # type: ignore[arg-type]  # flags of numbers only
        configs=found or configs(),
        managers=FileDefaults(),
    )


def originals(retention_ms: str | None, retention_bytes: str | None) -> tuple[OriginalConfig, ...]:
    return (
        OriginalConfig(name="retention.ms", value=retention_ms),
        OriginalConfig(name="retention.bytes", value=retention_bytes),
    )


def test_policy_when_set_first_without_flags_then_takes_the_effective_retention() -> None:
    policy = enabled(found=configs(retention_bytes="5000"))

    assert policy == TopicPolicy(
        topic="orders",
        topic_id=TOPIC_ID,
        state=PolicyState.ENABLING,
        retention_ms=int(WEEK_MS),
        retention_bytes=5000,
        local_retention_ms=-2,
        local_retention_bytes=-2,
        inherited=frozenset(PolicySetting) - {PolicySetting.RETENTION_BYTES},
        untiered_retention_ms=int(WEEK_MS),
        untiered_retention_bytes=5000,
        originals=originals(None, "5000"),
    )


def test_policy_when_set_first_then_records_absent_overrides_as_absent() -> None:
    """R9: an original that was absent stays absent."""
    policy = enabled()

    assert policy.originals == originals(None, None)


def test_policy_when_flags_are_not_given_then_keeps_their_values() -> None:
    current = replace(enabled(retention_ms=900, local_retention_ms=50), state=PolicyState.ACTIVE)

    policy = enabled(current, LIFTED, local_retention_bytes=-2, retention_bytes=77)

    assert (policy.retention_ms, policy.retention_bytes) == (900, 77)
    assert (policy.local_retention_ms, policy.local_retention_bytes) == (50, -2)


def test_copy_lag_when_only_the_other_flags_are_given_then_counts_from_what_it_did() -> None:
    by_roll = enabling_policy(
        topic="orders",
        topic_id=TOPIC_ID,
        current=enabled(),
        flags=PolicyFlags(copy_lag_ms=60_000, copy_lag_since=CopyLagSince.ROLL),
        configs=LIFTED,
        managers=FileDefaults(),
    )

    found = [each.copy_lag_since for each in (enabled(), enabled(by_roll, LIFTED, retention_ms=-1))]

    assert found == [CopyLagSince.NEWEST_RECORD, CopyLagSince.ROLL]


def test_deletion_lag_when_given_then_kept_until_it_is_given_back_to_the_managers() -> None:
    """PIP-17's deletion lag of one topic; without its own, the managers' setting applies."""
    given = enabled(enabled(), LIFTED, local_deletion_lag_ms=4)
    kept = enabled(given, LIFTED, retention_ms=900)

    lags = [each.local_deletion_lag_ms for each in (enabled(), given, kept)]

    assert lags == [-1, 4, 4]
    assert enabled(kept, LIFTED, local_deletion_lag_ms=-1).local_deletion_lag_ms == -1


@pytest.mark.parametrize("state", [PolicyState.ENABLING, PolicyState.ACTIVE])
@pytest.mark.parametrize("found", [configs(retention_ms="5"), LIFTED])
def test_originals_when_tiering_is_on_then_stay_those_recorded(
    state: PolicyState, found: TopicConfigs
) -> None:
    """R9: neither a user's later value nor rlm's own -1 is an original."""
    current = replace(enabled(found=configs(retention_ms="100")), state=state)

    assert enabled(current, found).originals == originals("100", None)


@pytest.mark.parametrize("state", [PolicyState.DISABLING, PolicyState.DISABLED])
def test_originals_when_reenabled_with_the_override_active_then_stay_those_recorded(
    state: PolicyState,
) -> None:
    """R9: rlm set the present -1, so the present values are no originals."""
    current = replace(enabled(found=configs(retention_ms="100")), state=state)

    assert enabled(current, LIFTED).originals == originals("100", None)


def test_originals_when_reenabled_after_restoring_then_are_the_present_ones() -> None:
    """R9: the topic's present settings are the user's."""
    current = replace(enabled(found=configs(retention_ms="100")), state=PolicyState.DISABLED)

    policy = enabled(current, configs(retention_bytes="9"))

    assert policy.originals == originals(None, "9")
    assert policy.retention_ms == 100


def test_policy_when_reenabled_then_no_longer_deletes_remote_data() -> None:
    current = replace(enabled(), state=PolicyState.DISABLED, delete_remote=True)

    assert not enabled(current).delete_remote


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        ({"retention_ms": -2}, "retention.ms"),
        ({"retention_bytes": 2**63}, "retention.bytes"),
        ({"local_retention_ms": -3}, "local.retention.ms"),
        ({"local_retention_bytes": -3}, "local.retention.bytes"),
        ({"retention_ms": 10, "local_retention_ms": 11}, "local.retention.ms <= retention.ms"),
        ({"retention_ms": 10, "local_retention_ms": -1}, "local.retention.ms <= retention.ms"),
        ({"retention_bytes": 1, "local_retention_bytes": 2}, "local.retention.bytes <="),
    ],
)
def test_policy_when_values_break_a_rule_then_refused_with_it(
    flags: dict[str, int], rule: str
) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        enabled(None, None, **flags)

    assert rule in str(refused.value.context["rule"])


def test_policy_when_total_is_lowered_below_the_kept_local_retention_then_refused() -> None:
    current = replace(enabled(retention_ms=900, local_retention_ms=50), state=PolicyState.ACTIVE)

    with pytest.raises(InvalidConfigError, match="above the total"):
        enabled(current, LIFTED, retention_ms=49)


@pytest.mark.parametrize("local", [-2, -1, 0, 10**15])
def test_policy_when_total_is_unlimited_then_any_local_retention_is_accepted(local: int) -> None:
    """Scenario 86: unlimited total retention with a local retention."""
    policy = enabled(retention_ms=-1, local_retention_ms=local)

    assert (policy.retention_ms, policy.local_retention_ms) == (-1, local)


@pytest.mark.parametrize("topic", sorted(INTERNAL_TOPICS.union(OWN_TOPICS)))
def test_topic_when_internal_or_of_rlm_then_refused(topic: str) -> None:
    """R9."""
    with pytest.raises(InvalidConfigError, match=r"rule=not an internal|rule=not a topic of rlm"):
        check_tierable(configs(topic), own_topics=OWN_TOPICS)


@pytest.mark.parametrize(
    "found",
    [
        configs(cleanup_policy="compact"),
        configs(cleanup_policy="compact,delete"),
        configs(cleanup_policy=""),
        configs(remote_storage_enable="true"),
    ],
)
def test_topic_when_compacted_or_tiered_by_kafka_then_refused_with_the_setting(
    found: TopicConfigs,
) -> None:
    """R9."""
    with pytest.raises(InvalidConfigError) as refused:
        check_tierable(found, own_topics=OWN_TOPICS)

    assert "=" in str(refused.value.context["rule"])


@pytest.mark.parametrize("version", ["0.8.0", "0.9.0", "0.10.0-IV0", "0.10.2-IV0"])
def test_topic_when_its_format_has_no_leader_epochs_then_refused_but_not_if_tiered_already(
    version: str,
) -> None:
    found = configs(message_format_version=version)

    with pytest.raises(InvalidConfigError) as refused:
        check_tierable(found, own_topics=OWN_TOPICS)

    assert f"message.format.version={version}," in str(refused.value.context["rule"])
    assert untierable_reason(found) is None


@pytest.mark.parametrize("version", ["0.11.0-IV2", "1.0-IV0", "2.8-IV1"])
def test_topic_when_its_format_has_leader_epochs_then_accepted(version: str) -> None:
    check_tierable(configs(message_format_version=version), own_topics=OWN_TOPICS)


def test_topic_when_brokers_know_no_remote_storage_then_accepted() -> None:
    old = {n: v for n, v in configs().entries.items() if n != "remote.storage.enable"}

    check_tierable(TopicConfigs(topic="orders", entries=old), own_topics=OWN_TOPICS)


def test_topic_when_brokers_know_no_message_format_then_accepted() -> None:
    """Kafka 4 brokers do not have this setting."""
    new = {n: v for n, v in configs().entries.items() if n != "message.format.version"}

    check_tierable(TopicConfigs(topic="orders", entries=new), own_topics=OWN_TOPICS)


@pytest.mark.parametrize(
    ("found", "expected"),
    [(LIFTED, True), (configs(), False), (configs(retention_ms="-1", retention_bytes="1"), False)],
)
def test_broker_retention_when_both_limits_are_off_then_deletes_nothing(
    found: TopicConfigs,
    expected: bool,
) -> None:
    assert deletes_nothing(found) is expected


def test_policy_when_new_and_levels_apply_then_flags_and_the_topics_own_retention_win() -> None:
    """**Data loss:** a pattern must not shorten a retention that the topic has of its own."""
    level = PolicyLevel(pattern="*", retention_ms=1, retention_bytes=2, local_retention_bytes=0)

    policy = enabling_policy(
        topic="orders",
        topic_id=TOPIC_ID,
        current=None,
        flags=PolicyFlags(local_retention_ms=5),
        configs=configs(retention_ms="1000"),
        managers=FileDefaults(),
        levels=(level,),
    )

    assert (policy.retention_ms, policy.retention_bytes) == (1000, 2)
    assert (policy.local_retention_ms, policy.local_retention_bytes) == (5, 0)
    own = {PolicySetting.RETENTION_MS, PolicySetting.LOCAL_RETENTION_MS}
    assert policy.inherited == frozenset(PolicySetting) - own


def test_policy_when_a_setting_is_left_to_the_levels_then_their_value_or_the_untiered_one() -> None:
    current = enabled(retention_ms=9, retention_bytes=9)  # -1 before tiering

    policy = enabling_policy(
        topic="orders",
        topic_id=TOPIC_ID,
        current=current,
        flags=PolicyFlags(inherit=frozenset(RETENTIONS), local_deletion_lag_ms=-1),
        configs=LIFTED,
        managers=FileDefaults(),
        levels=(PolicyLevel(pattern="orders", retention_ms=5, local_deletion_lag_ms=6),),
    )

    values = (policy.retention_ms, policy.retention_bytes, policy.local_deletion_lag_ms)
    assert values == (5, -1, 6)
    assert policy.inherited == frozenset(PolicySetting)


def test_flags_when_they_refer_to_the_managers_then_the_next_level_decides() -> None:
    flags = PolicyFlags(
        retention_ms=-1,
        local_deletion_lag_ms=-1,
        offload_mode=OffloadModeFlag.INHERIT,
        offload_segment_max_bytes=-1,
        offload_segment_rollover_ms=-1,
    )

    assert flags.given == {PolicySetting.RETENTION_MS}
    assert flags.inherited == {
        PolicySetting.LOCAL_DELETION_LAG_MS,
        PolicySetting.OFFLOAD_MODE,
        PolicySetting.OFFLOAD_SEGMENT_MAX_BYTES,
        PolicySetting.OFFLOAD_SEGMENT_ROLLOVER_MS,
    }


def test_policy_when_tiered_again_after_its_retention_was_restored_then_that_is_untiered() -> None:
    """While `rlm` keeps the topic at -1, the recorded value does not change."""
    first = enabled(found=configs(retention_ms="1000"))
    disabled = replace(first, state=PolicyState.DISABLED)

    again = enabled(disabled, configs(retention_ms="2000"))
    changed = enabled(again, LIFTED)

    assert again.untiered_retention_ms == changed.untiered_retention_ms == 2000
