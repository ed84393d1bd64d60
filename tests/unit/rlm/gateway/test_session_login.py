"""A login on a connection that is in use (KIP-368): the gateway asks nothing while it goes on."""

from __future__ import annotations

from rlm.gateway.tier_facts import TierFacts
from rlm.wire.api.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from rlm.wire.api.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.unit.rlm.gateway.session_world import TIERED, TOPIC_ID, SessionWorld, request

_REMOTE_FETCH = FetchRequest(
    max_wait_ms=500,
    min_bytes=1,
    max_bytes=1 << 20,
    topics=(
        FetchTopic(
            topic_id=TOPIC_ID,
            partitions=(FetchPartition(partition=0, fetch_offset=50, partition_max_bytes=1 << 19),),
        ),
    ),
)
_HANDSHAKE = SaslHandshakeRequest(mechanism="PLAIN")


def _keys(world: SessionWorld) -> list[int]:
    return [int.from_bytes(frame[:2], "big") for frame in world.at_broker()]


def test_login_when_a_fetch_before_it_waits_for_the_store_then_it_begins_after_its_answer() -> None:
    """No question of the gateway's own can come between the messages of a login."""
    world = SessionWorld(facts={TIERED: TierFacts(first_stored_offset=0, trimmed_offset=100)})

    fetch = request(FETCH, 13, _REMOTE_FETCH)
    world.client_sends(fetch + request(SASL_HANDSHAKE, 1, _HANDSHAKE, 2))

    sent = _keys(world)
    assert FETCH.key in sent
    assert len(sent) > 1  # the gateway's own questions
    assert SASL_HANDSHAKE.key not in sent
    assert not world.session.reads_client


def test_login_when_nothing_is_under_way_then_it_is_passed_on_alone() -> None:
    world = SessionWorld()

    world.client_sends(request(SASL_HANDSHAKE, 1, _HANDSHAKE))

    assert _keys(world) == [SASL_HANDSHAKE.key]
