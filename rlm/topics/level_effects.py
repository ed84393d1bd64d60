"""Finds how policy levels change topics, and applies nothing.

Managers apply the result (rlm.topics.inheritance); commands show it before they change a level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from uuid import UUID

from rlm.broker.cluster import TopicView
from rlm.broker.topics.topic_admin import TopicAdmin
from rlm.facts.topic_configs import TopicConfigs
from rlm.policy.topic.levels import LevelIndex, resolved, tiering_level
from rlm.policy.topic.policy_values import FileDefaults
from rlm.policy.topic.topic_policy import (
    NOT_INTERNAL,
    PolicyFlags,
    check_tierable,
    deletes_nothing,
    enabling_policy,
    not_tierable,
)
from rlm.topics.lost_policy import Recall, SettingsBeforeTiering
from rlmm.events.policy import PolicyState, TopicPolicy
from rlmm.events.policy_level import PolicyLevel
from rsm.segment.errors import InvalidConfigError, TieredStorageError

_ENDING = frozenset({PolicyState.DISABLING, PolicyState.DISABLED})
_DISABLED = "tiering of the topic was disabled: this has priority over patterns"
_NOT_ENABLED = "tiering of the topic was disabled: `rlm topic enable` tiers it again"
_INCOMPLETE = "an earlier change of its policy is not complete: repeat this change later"
NO_FLAGS: Mapping[str, PolicyFlags] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEffect:
    """Represents the effect of the levels on one topic: its policy before and after.

    `pattern` is the pattern that tiers the topic; empty if the topic only inherits settings.
    `is_named`: the change itself sets settings of this topic. `obstacle` is why the levels do
    not apply; empty if they do. `is_refused`: the topic itself or its settings are the obstacle.
    `is_unlimited`: the topic has no policy, and its retention on the broker is -1.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _AffectedTopic:
    """Represents a topic that may change. `levels` are only those that apply to it."""

    view: TopicView
    policy: TopicPolicy | None
    levels: tuple[PolicyLevel, ...]
    flags: PolicyFlags | None

    @property
    def pattern(self) -> str:
        """Return the pattern that tiers the topic; empty if none does."""
        tiering = tiering_level(self.view.topic, self.levels)
        return "" if tiering is None else tiering.pattern

    @property
    def is_inheriting(self) -> bool:
        policy = self.policy
        return policy is not None and bool(policy.inherited) and policy.state not in _ENDING


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
        """Use `managers` for settings that no level gives, and never tier `own_topics`."""
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
        """Return the effect on each topic that matches a pattern, inherits settings, or is `named`.

        `policies` maps topic ids to all policies. `named` maps topic names to the new own settings
        of these topics. Broker `node_id` reports the topics' settings. Raises RetriableError or
        NotFoundError if that broker does not answer.
        """
        concerned = tuple(self._concerned(topics, LevelIndex(levels), policies, named))
        asked = [each.view.topic for each in concerned if self._may_change(each)]
        configs = self._topics.configs_at(node_id, asked) if asked else {}
        before = SettingsBeforeTiering(self._recall, self._topics, node_id=node_id)
        return tuple(self._effect(each, configs.get(each.view.topic), before) for each in concerned)

    def _concerned(
        self,
        topics: Iterable[TopicView],
        levels: LevelIndex,
        policies: Mapping[UUID, TopicPolicy],
        named: Mapping[str, PolicyFlags],
    ) -> Iterator[_AffectedTopic]:
        for view in topics:
            found = _AffectedTopic(
                view=view,
                policy=policies.get(view.topic_id),
                levels=levels.levels_of(view.topic),
                flags=named.get(view.topic),
            )
            if found.flags is not None or found.is_inheriting or found.pattern:
                yield found

    def _effect(
        self,
        concerned: _AffectedTopic,
        configs: TopicConfigs | TieredStorageError | None,
        before: SettingsBeforeTiering,
    ) -> TopicEffect:
        view, policy = concerned.view, concerned.policy
        same = TopicEffect(
            topic=view.topic,
            topic_id=view.topic_id,
            pattern=concerned.pattern,
            before=policy,
            after=policy,
            is_named=concerned.flags is not None,
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
                configs = self._untiered(view, configs, before)
            after = self._after(concerned, configs)
            return replace(same, after=after, is_unlimited=is_unlimited)
        except InvalidConfigError as error:
            return replace(same, obstacle=str(error), is_refused=True)
        except TieredStorageError as error:
            return replace(same, obstacle=str(error))

    def _untiered(
        self, view: TopicView, configs: TopicConfigs, before: SettingsBeforeTiering
    ) -> TopicConfigs:
        """Return the settings before tiering. Raises InvalidConfigError if tiering is forbidden."""
        if view.is_internal:
            raise not_tierable(view.topic, NOT_INTERNAL)
        check_tierable(configs, own_topics=self._own_topics)
        return before.of(configs, view.topic_id)

    def _after(self, concerned: _AffectedTopic, configs: TopicConfigs) -> TopicPolicy:
        policy = concerned.policy
        enabling = enabling_policy(
            topic=concerned.view.topic,
            topic_id=concerned.view.topic_id,
            current=policy,
            flags=concerned.flags or PolicyFlags(),
            configs=configs,
            managers=self._managers,
            levels=concerned.levels,
        )
        return enabling if policy is None else replace(enabling, state=policy.state)

    def _may_change(self, concerned: _AffectedTopic) -> bool:
        """Return whether the topic's settings must be read; incomplete policies change later."""
        policy = concerned.policy
        if policy is None:
            return True
        if policy.state is not PolicyState.ACTIVE:
            return False
        found = resolved(policy, concerned.levels, self._managers.values)
        return concerned.flags is not None or found != policy
