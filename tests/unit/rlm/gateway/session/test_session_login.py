"""A login on a connection in use (KIP-368): meanwhile the gateway sends no request of its own."""

from __future__ import annotations

from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.session.session import Session
from rlm.wire.api.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from rlm.wire.api.sasl_authenticate import (
    SASL_AUTHENTICATE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from rlm.wire.api.sasl_handshake import (
    SASL_HANDSHAKE,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from rlm.wire.error_codes import ErrorCode
from tests.unit.rlm.gateway.session_world import (
    TIERED,
    TOPIC_ID,
    SessionWorld,
    request,
    response,
)

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
    """The gateway sends no request of its own between the messages of a login."""
    world = SessionWorld(facts={TIERED: RemoteLogBounds(first_stored_offset=0, trimmed_offset=100)})

    fetch = request(FETCH, 13, _REMOTE_FETCH)
    world.client_sends(fetch + request(SASL_HANDSHAKE, 1, _HANDSHAKE, 2))

    sent = _keys(world)
    assert FETCH.key in sent
    assert len(sent) > 1  # the gateway's own requests
    assert SASL_HANDSHAKE.key not in sent
    assert not world.session.reads_client


def test_login_when_nothing_is_under_way_then_it_is_passed_on_alone() -> None:
    world = SessionWorld()

    world.client_sends(request(SASL_HANDSHAKE, 1, _HANDSHAKE))

    assert _keys(world) == [SASL_HANDSHAKE.key]


def _logs_in(world: SessionWorld, *, handshake_code: int = 0, code: int = 0) -> None:
    world.client_sends(request(SASL_HANDSHAKE, 1, _HANDSHAKE))
    world.broker_sends(
        response(SASL_HANDSHAKE, 1, SaslHandshakeResponse(error_code=handshake_code))
    )
    if handshake_code == ErrorCode.NONE:
        world.client_sends(request(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest()))
        answer = SaslAuthenticateResponse(error_code=code, error_message=None)
        world.broker_sends(response(SASL_AUTHENTICATE, 2, answer))


def _next_client(world: SessionWorld) -> None:
    """Replace the session by that of another connection to the same listener."""
    world.session = Session(world.parts)
    world.at_broker()
    world.at_client()


def test_login_when_it_succeeds_then_its_answers_are_the_brokers_and_fetches_are_served() -> None:
    world = SessionWorld()
    _logs_in(world)
    answers = world.at_client()
    world.at_broker()

    world.client_sends(request(FETCH, 13, _REMOTE_FETCH))

    assert len(answers) == 2
    assert world.closed is None
    assert _keys(world) == [FETCH.key]


def test_fetch_when_others_log_in_here_and_its_client_did_not_then_is_not_looked_into() -> None:
    """The broker would close the connection, too, but only after the gateway has done the work."""
    world = SessionWorld()
    _logs_in(world)
    _next_client(world)

    world.client_sends(request(FETCH, 13, _REMOTE_FETCH)[:20])

    assert world.closed is not None
    assert world.closed.reason is DisconnectCause.NOT_LOGGED_IN


def test_fetch_when_its_clients_login_failed_then_is_not_looked_into() -> None:
    world = SessionWorld()
    _logs_in(world, code=ErrorCode.SASL_AUTHENTICATION_FAILED)

    world.client_sends(request(FETCH, 13, _REMOTE_FETCH))

    assert world.closed is not None
    assert world.closed.reason is DisconnectCause.NOT_LOGGED_IN


def test_fetch_when_the_listener_is_without_logins_then_is_served() -> None:
    world = SessionWorld()
    _logs_in(world, handshake_code=ErrorCode.ILLEGAL_SASL_STATE)
    _next_client(world)

    world.client_sends(request(FETCH, 13, _REMOTE_FETCH))

    assert _keys(world) == [FETCH.key]
