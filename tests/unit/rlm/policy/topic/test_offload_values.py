"""Which offload settings a topic may have (PIP-76), and how it returns to the managers'."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.facts.topic_configs import ConfigValue, TopicConfigs
from rlm.policy.topic.policy_values import FileDefaults
from rlm.policy.topic.topic_policy import OffloadModeFlag, PolicyFlags, enabling_policy
from rlmm.events.policy import TopicPolicy
from rsm.segment.errors import InvalidConfigError
from rsm.segment.offload_settings import OffloadMode, OffloadSettings

STREAM = PolicyFlags(offload_mode=OffloadModeFlag.STREAM, retention_ms=-1)
MANAGERS = FileDefaults()
STREAMING = FileDefaults(offload=OffloadSettings(mode=OffloadMode.STREAM))
ROLLOVER_MS = MANAGERS.offload.segment_rollover_ms


def enabled(
    flags: PolicyFlags,
    *,
    current: TopicPolicy | None = None,
    managers: FileDefaults = MANAGERS,
    max_message_bytes: int | None = None,
) -> TopicPolicy:
    values = {
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "max.message.bytes": max_message_bytes,
    }
    return enabling_policy(
        topic="orders",
        topic_id=UUID(int=7),
        current=current,
        flags=flags,
        configs=TopicConfigs(
            topic="orders",
            entries={
                name: ConfigValue(value=str(value), is_override=True)
                for name, value in values.items()
                if value is not None
            },
        ),
        managers=managers,
    )


def test_offload_when_given_then_kept_until_it_is_given_back_to_the_managers() -> None:
    given = enabled(
        replace(STREAM, offload_segment_max_bytes=2_048, offload_segment_rollover_ms=1_000)
    )
    kept = enabled(PolicyFlags(retention_ms=900_000), current=given)
    returned = enabled(
        PolicyFlags(
            offload_mode=OffloadModeFlag.INHERIT,
            offload_segment_max_bytes=-1,
            offload_segment_rollover_ms=-1,
        ),
        current=kept,
    )

    found = [
        (each.offload_mode, each.offload_segment_max_bytes, each.offload_segment_rollover_ms)
        for each in (given, kept, returned)
    ]

    streamed = (OffloadMode.STREAM, 2_048, 1_000)
    assert found == [streamed, streamed, (None, -1, -1)]


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (
            PolicyFlags(offload_segment_max_bytes=1_023),
            "1024 <= max.size.per.offload.segment.bytes <= 1879048192",
        ),
        (
            PolicyFlags(offload_segment_max_bytes=2**36 + 1),
            "1024 <= max.size.per.offload.segment.bytes <= 1879048192",
        ),
        (
            PolicyFlags(offload_segment_rollover_ms=999),
            "1000 <= max.offload.segment.rollover.time.ms <= 604800000",
        ),
        (
            PolicyFlags(offload_segment_rollover_ms=604_800_001),
            "1000 <= max.offload.segment.rollover.time.ms <= 604800000",
        ),
    ],
)
def test_offload_when_a_value_is_out_of_range_then_refused_with_the_range(
    flags: PolicyFlags, rule: str
) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        enabled(flags)

    assert refused.value.context["rule"] == rule
    key = rule.split()[2]
    assert str(refused.value).endswith(f". Give {key} a value in this range.")


@pytest.mark.parametrize(
    ("flags", "managers"),
    [
        (replace(STREAM, retention_ms=ROLLOVER_MS - 1), MANAGERS),
        (replace(STREAM, local_retention_ms=ROLLOVER_MS - 1), MANAGERS),
        (PolicyFlags(local_retention_ms=1_500, offload_segment_rollover_ms=1_501), MANAGERS),
        (PolicyFlags(local_retention_ms=ROLLOVER_MS - 1), STREAMING),
    ],
)
def test_rollover_when_longer_than_a_retention_then_refused_with_both(
    flags: PolicyFlags, managers: FileDefaults
) -> None:
    with pytest.raises(InvalidConfigError, match="rollover time of offload segments") as refused:
        enabled(flags, managers=managers)

    (rollover_ms, retention_ms) = (
        value for name, value in refused.value.context.items() if name.endswith(".ms")
    )
    assert rollover_ms == retention_ms + 1  # type: ignore[operator]  # both are numbers
    assert str(refused.value).endswith("retention.ms.")
    assert ". Lower max.offload.segment.rollover.time.ms, or raise " in str(refused.value)


@pytest.mark.parametrize(
    ("flags", "managers"),
    [
        (replace(STREAM, local_retention_ms=ROLLOVER_MS, retention_ms=ROLLOVER_MS), MANAGERS),
        (replace(STREAM, local_retention_ms=0), MANAGERS),
        (replace(STREAM, local_retention_ms=-1), MANAGERS),
        (PolicyFlags(retention_ms=1_000), MANAGERS),
        (
            PolicyFlags(retention_ms=1_000, offload_mode=OffloadModeFlag.SEGMENT),
            STREAMING,
        ),
    ],
)
def test_rollover_when_it_ends_in_time_or_nothing_streams_then_accepted(
    flags: PolicyFlags, managers: FileDefaults
) -> None:
    assert enabled(flags, managers=managers).offload_segment_rollover_ms == -1


def test_batch_when_it_can_exceed_the_stream_buffer_then_refused_with_both() -> None:
    managers = FileDefaults(stream_buffer_bytes=10_000)

    with pytest.raises(InvalidConfigError, match="stream buffer") as refused:
        enabled(STREAM, managers=managers, max_message_bytes=10_001)

    assert refused.value.context["max.message.bytes"] == 10_001
    assert refused.value.context["offload.stream.buffer.bytes"] == 10_000
    assert refused.value.context["advice"] == (
        "Lower max.message.bytes of the topic, or raise offload.stream.buffer.bytes in each "
        "manager's file"
    )


@pytest.mark.parametrize(
    ("flags", "max_message_bytes"),
    [(STREAM, 10_000), (STREAM, None), (PolicyFlags(), 10_001)],
)
def test_batch_when_it_fits_or_nothing_streams_then_accepted(
    flags: PolicyFlags, max_message_bytes: int | None
) -> None:
    managers = FileDefaults(stream_buffer_bytes=10_000)

    policy = enabled(flags, managers=managers, max_message_bytes=max_message_bytes)

    assert policy.offload_segment_max_bytes == -1
