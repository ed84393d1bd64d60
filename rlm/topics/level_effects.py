"""Finds what policy levels make of topics, and changes nothing.

Managers apply the result (rlm.topics.inheritance); commands show it before they change a level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from uuid import UUID

from rlm.broker.cluster import TopicView
from rlm.broker.topics.topic_admin import TopicAdmin
from rlm.facts.topic_configs import TopicConfigs
from rlm.policy.topic.levels import resolved, tiering_level
from rlm.policy.topic.policy_values import FileDefaults
from rlm.policy.topic.topic_policy import (
    NOT_INTERNAL,
    PolicyFlags,
    check_tierable,
    deletes_nothing,
    enabling_policy,
    not_tierable,
)
from rlm.topics.lost_policy import Recall, configs_before_tiering
from rlmm.events.policy import PolicyState, TopicPolicy
from rlmm.events.policy_level import PolicyLevel
from rsm.segment.errors import InvalidConfigError, TieredStorageError

_ENDING = frozenset({PolicyState.DISABLING, PolicyState.DISABLED})
_DISABLED = "tiering of the topic was disabled, which wins over patterns"
_NOT_ENABLED = "tiering of the topic was disabled: `rlm topic enable` tiers it again"
_ORIGINALS_UNKNOWN = "its retention is -1, and nobody knows yet whether tiering set it"
_INCOMPLETE = "an earlier change of its policy is not complete: repeat this one later"
NO_FLAGS: Mapping[str, PolicyFlags] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEffect:
    """Represents what the levels make of one topic: its policy before and after.

    `pattern` is the one that tiers the topic; empty for a topic that only inherits settings.
    `is_named`: the change itself gives settings of this topic. `obstacle` is why the topic cannot
    follow; empty if it does. `is_refused`: the obstacle is in the settings themselves.
    `is_unlimited`: the topic has no policy, and brokers delete none of its data.
    """

    topic: str
    topic_id: UUID
    pattern: str
    before: TopicPolicy | None
    after: TopicPolicy | None
    obstacle: str = ""
    is_named: bool = False
    is_refused: bool = False
    is_unlimited: bool = False

    @property
    def is_change(self) -> bool:
        return self.after != self.before


class LevelEffects:
    """Computes effects from the settings of topics as one broker has them. Thread-safe."""

    def __init__(
        self,
        topics: TopicAdmin,
        *,
        recall: Recall,
        own_topics: frozenset[str],
        managers: FileDefaults,
    ) -> None:
        """Use `managers` where no level gives a setting, and never tier `own_topics`."""
        self._topics = topics
        self._recall = recall
        self._own_topics = own_topics
        self._managers = managers

    def of(
        self,
        topics: Iterable[TopicView],
        levels: Sequence[PolicyLevel],
        policies: Mapping[UUID, TopicPolicy],
        *,
        node_id: int,
        named: Mapping[str, PolicyFlags] = NO_FLAGS,
    ) -> tuple[TopicEffect, ...]:
        """Return the effect on each topic that a pattern matches or that inherits settings.

        `policies` are those of all topic ids. `named` are topics whose own settings change, too.
        The settings are those of broker `node_id`. Raises RetriableError or NotFoundError if it
        does not answer.
        """
        concerned = [
            (each, policies.get(each.topic_id))
            for each in topics
            if each.topic in named or _concerns(each.topic, policies.get(each.topic_id), levels)
        ]
        asked = [
            each.topic
            for each, policy in concerned
            if self._may_change(policy, levels, is_named=each.topic in named)
        ]
        configs = self._topics.configs_at(node_id, asked) if asked else {}
        return tuple(
            self._effect(
                each, policy, configs.get(each.topic), levels, named.get(each.topic), node_id
            )
            for each, policy in concerned
        )

    def _effect(
        self,
        view: TopicView,
        policy: TopicPolicy | None,
        configs: TopicConfigs | TieredStorageError | None,
        levels: Sequence[PolicyLevel],
        flags: PolicyFlags | None,
        node_id: int,
    ) -> TopicEffect:
        tiering = tiering_level(view.topic, levels)
        same = TopicEffect(
            topic=view.topic,
            topic_id=view.topic_id,
            pattern="" if tiering is None else tiering.pattern,
            before=policy,
            after=policy,
            is_named=flags is not None,
        )
        if policy is not None and policy.state in _ENDING:
            return replace(same, obstacle=_NOT_ENABLED if same.is_named else _DISABLED)
        if configs is None:
            return replace(same, obstacle=_INCOMPLETE) if same.is_named else same
        if isinstance(configs, TieredStorageError):
            return replace(same, obstacle=str(configs))
        is_unlimited = policy is None and deletes_nothing(configs)
        try:
            if policy is None:
                configs = self._untiered(view, configs, node_id)
            after = self._after(view, policy, configs, levels, flags)
            return replace(same, after=after, is_unlimited=is_unlimited)
        except InvalidConfigError as error:
            return replace(same, obstacle=str(error), is_refused=True)
        except TieredStorageError as error:
            return replace(same, obstacle=f"{_ORIGINALS_UNKNOWN}: {error}")

    def _untiered(self, view: TopicView, configs: TopicConfigs, node_id: int) -> TopicConfigs:
        """Return the settings of a topic that has no policy, if it can be tiered."""
        if view.is_internal:
            raise not_tierable(view.topic, NOT_INTERNAL)
        check_tierable(configs, own_topics=self._own_topics)
        return configs_before_tiering(
            configs, view.topic_id, self._recall, self._topics, node_id=node_id
        )

    def _after(
        self,
        view: TopicView,
        policy: TopicPolicy | None,
        configs: TopicConfigs,
        levels: Sequence[PolicyLevel],
        flags: PolicyFlags | None,
    ) -> TopicPolicy:
        enabling = enabling_policy(
            topic=view.topic,
            topic_id=view.topic_id,
            current=policy,
            flags=PolicyFlags() if flags is None else flags,
            configs=configs,
            managers=self._managers,
            levels=levels,
        )
        return enabling if policy is None else replace(enabling, state=policy.state)

    def _may_change(
        self, policy: TopicPolicy | None, levels: Sequence[PolicyLevel], *, is_named: bool
    ) -> bool:
        """Return whether the topic's settings decide; those that wait for brokers change later."""
        if policy is None:
            return True
        found = resolved(policy, levels, self._managers.values)
        return policy.state is PolicyState.ACTIVE and (is_named or found != policy)


def _concerns(topic: str, policy: TopicPolicy | None, levels: Sequence[PolicyLevel]) -> bool:
    is_inheriting = policy is not None and bool(policy.inherited) and policy.state not in _ENDING
    return is_inheriting or tiering_level(topic, levels) is not None
