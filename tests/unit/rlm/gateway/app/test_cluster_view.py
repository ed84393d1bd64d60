"""The view that a gateway's sessions share, and its refreshes."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import pytest

from rlm.broker.cluster import BrokerAddress, ClusterView, TopicView
from rlm.config.values import HostPort
from rlm.gateway.app.cluster_view import LiveFacts
from rlm.gateway.endpoints.single_broker_routing import SingleBrokerRouting, SingleBrokerSettings
from rlmm.events.policy import PolicyState, TopicPolicy, TopicPolicyChanged
from rsm.segment.errors import RetriableError
from tests.remote_world import TIP
from tests.unit.rlm.gateway.gateway_world import OWN, GatewayWorld

BROKER = HostPort(host="broker", port=9092)
MINUTE_MS = 60_000


@dataclass
class Cluster:
    """One broker that knows the topic by some id."""

    topic_id: UUID = TIP.topic_id
    is_down: bool = False
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def view(self, topics: tuple[str, ...]) -> ClusterView:
        if self.is_down:
            raise RetriableError("down")
        self.asked.append(topics)
        found = TopicView(topic=TIP.topic, topic_id=self.topic_id, is_internal=False, partitions=())
        return ClusterView(
            cluster_id="c",
            controller_id=None,
            brokers={1: BrokerAddress(node_id=1, host=BROKER.host, port=BROKER.port)},
            topics={TIP.topic: found} if TIP.topic in topics else {},
            refused={},
        )


class Given:
    def __init__(self) -> None:
        self.world = GatewayWorld()
        self.cluster = Cluster()
        self.positions = {0: 1}
        context = self.world.context()
        self.routing = SingleBrokerRouting(SingleBrokerSettings(node_id=1, own=lambda: OWN))
        self.facts = LiveFacts(
            self.routing,
            cluster=self.cluster,
            metadata=context.metadata,
            positions=lambda: self.positions,
            timestamps=context.timestamps,
            query_settings=context.query_settings,
            new_id=context.new_id,
            clock=self.world.remote.clock,
        )

    def tier(self) -> None:
        policy = TopicPolicy(
            topic=TIP.topic,
            topic_id=TIP.topic_id,
            state=PolicyState.ACTIVE,
            retention_ms=-1,
            retention_bytes=-1,
        )
        event = TopicPolicyChanged(event_id=UUID(int=9), policy=policy)
        assert self.world.metadata.publish(event).accepted


def test_facts_when_the_cluster_has_never_answered_then_there_is_nothing_to_serve_by() -> None:
    given = Given()
    given.cluster.is_down = True

    with pytest.raises(RetriableError):
        given.facts.refresh()
    with pytest.raises(RetriableError):
        given.facts.context()
    assert given.routing.upstreams() == ()


def test_facts_when_refreshed_then_know_the_broker_and_the_tiered_topics() -> None:
    given = Given()
    given.tier()

    given.facts.refresh()

    context = given.facts.context()
    assert given.routing.upstreams() == (BROKER,)
    assert context.topics.partition(TIP.topic, TIP.partition) == TIP
    assert context.topology.address_of(1) == OWN


def test_applied_when_metadata_was_applied_since_the_refresh_then_does_not_count_it() -> None:
    """R15: a trim waits for what sessions know, not for what their process knows."""
    given = Given()
    assert given.facts.applied() == {}
    given.facts.refresh()
    given.tier()
    given.positions[0] = 2
    assert given.facts.applied() == {0: 1}
    given.facts.refresh()
    assert given.facts.applied() == {0: 2}


def test_facts_when_the_cluster_can_not_be_asked_for_a_while_then_stay() -> None:
    """Scenario 34: reads from the cache continue."""
    given = Given()
    given.facts.refresh()
    given.cluster.is_down = True
    given.world.remote.clock.now_ms += MINUTE_MS

    given.facts.refresh()

    assert given.routing.upstreams() == (BROKER,)


def test_facts_when_the_cluster_can_not_be_asked_for_long_then_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = Given()
    given.facts.refresh()
    given.cluster.is_down = True

    for _ in range(3):
        given.world.remote.clock.now_ms += MINUTE_MS
        given.facts.refresh()
    while_down = len(caplog.records)
    given.cluster.is_down = False
    given.facts.refresh()
    given.cluster.is_down = True
    given.world.remote.clock.now_ms += MINUTE_MS
    given.facts.refresh()

    assert while_down == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2


def test_facts_when_asked_often_then_the_cluster_is_asked_seldom_but_of_each_new_topic() -> None:
    given = Given()
    given.facts.refresh()
    given.facts.refresh()
    given.tier()
    given.facts.refresh()
    given.facts.refresh()

    assert given.cluster.asked == [(), (TIP.topic,)]


def test_facts_when_the_topic_was_created_again_then_its_name_leads_to_nothing_stored() -> None:
    """Scenario 38."""
    given = Given()
    given.cluster.topic_id = UUID(int=1234)
    given.tier()

    given.facts.refresh()

    assert given.facts.context().topics.partition(TIP.topic, 0) is None
