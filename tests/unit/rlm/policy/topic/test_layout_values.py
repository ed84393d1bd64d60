"""Which layouts of its own a topic may have, and how it returns to that of the managers."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.facts.topic_configs import ConfigValue, TopicConfigs
from rlm.policy.topic.policy_values import FileDefaults
from rlm.policy.topic.topic_policy import (
    PolicyFlags,
    changed_level,
    check_level,
    enabling_policy,
)
from rlmm.events.policy import PolicySetting, TopicPolicy
from rlmm.events.policy_level import PolicyLevel
from rsm.segment.errors import InvalidConfigError

PLUGIN = "rlm_example.layout:LabeledLayout"
KNOWN = FileDefaults(layouts=(PLUGIN, "raw", "block_v1", "block_v2"))
BUILT_IN = FileDefaults(layouts=("raw", "block_v1", "block_v2"))
OTHER_MANAGER = FileDefaults(layouts=())
NOT_KNOWN = FileDefaults()


def enabled(
    flags: PolicyFlags,
    *,
    current: TopicPolicy | None = None,
    managers: FileDefaults = KNOWN,
    levels: tuple[PolicyLevel, ...] = (),
) -> TopicPolicy:
    values = {"retention.ms": "-1", "retention.bytes": "-1"}
    return enabling_policy(
        topic="orders",
        topic_id=UUID(int=7),
        current=current,
        flags=flags,
        configs=TopicConfigs(
            topic="orders",
            entries={
                name: ConfigValue(value=value, is_override=True) for name, value in values.items()
            },
        ),
        managers=managers,
        levels=levels,
    )


def test_layout_when_given_then_kept_until_it_is_left_to_the_next_level() -> None:
    given = enabled(PolicyFlags(layout="block_v2"))
    kept = enabled(PolicyFlags(retention_ms=900_000), current=given)
    returned = enabled(PolicyFlags(inherit=frozenset({PolicySetting.LAYOUT})), current=kept)

    assert (given.layout, kept.layout, returned.layout) == ("block_v2", "block_v2", None)
    assert PolicySetting.LAYOUT not in kept.inherited
    assert PolicySetting.LAYOUT in returned.inherited


def test_layout_when_a_level_gives_it_then_topics_without_their_own_have_it() -> None:
    levels = (PolicyLevel(pattern="ord*", layout="block_v1"),)

    assert enabled(PolicyFlags(), levels=levels).layout == "block_v1"
    assert enabled(PolicyFlags(layout="raw"), levels=levels).layout == "raw"


@pytest.mark.parametrize(
    ("layout", "managers"),
    [(PLUGIN, KNOWN), (PLUGIN, NOT_KNOWN), ("block_v2", BUILT_IN), ("raw", KNOWN)],
)
def test_layout_when_managers_may_write_it_then_is_accepted(
    layout: str, managers: FileDefaults
) -> None:
    assert enabled(PolicyFlags(layout=layout), managers=managers).layout == layout
    check_level(PolicyLevel(pattern="o*", layout=layout), managers)


@pytest.mark.parametrize(
    ("layout", "managers", "known", "advice"),
    [
        (
            PLUGIN,
            BUILT_IN,
            "raw,block_v1,block_v2",
            "Choose a known layout, or add the class to rsm.config.layout in each manager's file",
        ),
        (
            "raw",
            OTHER_MANAGER,
            "none: the remote storage manager is a plug-in",
            "Remove the layout",
        ),
    ],
)
def test_layout_when_no_manager_can_write_it_then_is_refused_on_every_level(
    layout: str, managers: FileDefaults, known: str, advice: str
) -> None:
    level = changed_level(PolicyLevel(pattern="o*"), PolicyFlags(layout=layout))

    with pytest.raises(InvalidConfigError, match="managers cannot write the layout") as refused:
        enabled(PolicyFlags(layout=layout), managers=managers)
    with pytest.raises(InvalidConfigError, match="managers cannot write the layout"):
        check_level(level, managers)

    assert (refused.value.context["layout"], refused.value.context["known"]) == (layout, known)
    assert refused.value.context["advice"] == advice
    assert replace(level, layout=None) == PolicyLevel(pattern="o*")
