"""Connections that stay open: half-open ones, very slow ones, idle ones."""

from __future__ import annotations

from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.relay.connection_watch import Arrival, ConnectionWatch

_LONG_S = 600.0


def _arrival(
    request_count: int,
    *,
    is_partial: bool = False,
    is_read: bool = True,
    sent_count: int | None = None,
    taken_count: int = 0,
    active_s: float = 1e9,
) -> Arrival:
    return Arrival(
        request_count=request_count,
        is_partial=is_partial,
        is_read=is_read,
        sent_count=sent_count,
        taken_count=taken_count,
        active_s=active_s,
    )


def _watch() -> ConnectionWatch:
    return ConnectionWatch(progress_s=10.0, pressure_progress_s=2.0, idle_s=_LONG_S)


def test_overdue_when_no_request_ever_comes_then_the_connection_is_found() -> None:
    watch = _watch()
    assert watch.find_overdue({1: _arrival(0)}, 0.0) == {}
    assert watch.find_overdue({1: _arrival(0)}, 9.0) == {}
    assert watch.find_overdue({1: _arrival(0)}, 10.0) == {1: DisconnectCause.NO_REQUEST}


def test_overdue_when_a_request_drips_then_the_connection_is_found() -> None:
    """Also if single bytes keep the connection from being idle."""
    watch = _watch()
    assert watch.find_overdue({1: _arrival(7, is_partial=True)}, 0.0) == {}
    found = watch.find_overdue({1: _arrival(7, is_partial=True, active_s=11.0)}, 11.0)
    assert found == {1: DisconnectCause.SLOW_REQUEST}


def test_overdue_when_requests_come_whole_then_what_is_partial_now_has_its_own_time() -> None:
    watch = _watch()
    for second in range(0, 100, 6):
        assert watch.find_overdue({1: _arrival(second, is_partial=True)}, float(second)) == {}


def test_overdue_when_the_gateway_does_not_read_the_client_then_its_time_begins_again() -> None:
    """The client is not responsible for bytes that it could not send."""
    watch = _watch()
    watch.find_overdue({1: _arrival(3, is_partial=True)}, 0.0)
    watch.find_overdue({1: _arrival(3, is_partial=True, is_read=False)}, 8.0)
    assert watch.find_overdue({1: _arrival(3, is_partial=True)}, 16.0) == {}
    assert watch.find_overdue({1: _arrival(3, is_partial=True)}, 26.0) != {}


def test_overdue_when_an_answer_is_not_taken_then_the_connection_is_found() -> None:
    """Scenario 115: other clients need the memory of its response."""
    watch = _watch()
    for second, sent_count in ((0.0, 1), (9.0, 2), (18.0, 3), (27.0, 3)):
        assert (
            watch.find_overdue({1: _arrival(1, is_read=False, sent_count=sent_count)}, second) == {}
        )
    found = watch.find_overdue({1: _arrival(1, is_read=False, sent_count=3)}, 28.0)
    assert found == {1: DisconnectCause.ANSWER_NOT_TAKEN}


def test_overdue_when_an_answer_is_taken_bit_by_bit_then_is_found_only_while_others_wait() -> None:
    """Scenario 115: an unfinished response occupies memory, even if the client takes some bytes."""
    slow, is_saturated = _watch(), _watch()
    for second in range(10):
        arrivals = {1: _arrival(1, is_read=False, sent_count=second)}
        assert slow.find_overdue(arrivals, float(second)) == {}
        assert (
            is_saturated.find_overdue(arrivals, float(second), is_under_memory_pressure=True) == {}
        )
    arrivals = {1: _arrival(1, is_read=False, sent_count=10)}
    assert slow.find_overdue(arrivals, 10.0) == {}
    found = is_saturated.find_overdue(arrivals, 10.0, is_under_memory_pressure=True)
    assert found == {1: DisconnectCause.ANSWER_NOT_TAKEN}


def test_overdue_when_answers_are_taken_whole_then_each_has_its_own_time() -> None:
    watch = _watch()
    for second in range(100):
        arrival = _arrival(1, is_read=False, sent_count=second, taken_count=second // 9)
        assert watch.find_overdue({1: arrival}, float(second), is_under_memory_pressure=True) == {}


def test_overdue_when_an_answer_takes_long_then_its_connection_is_not_idle() -> None:
    """Over a slow network a large answer may take longer than connections may be idle."""
    watch = _watch()
    for second in range(0, 1_500, 5):
        arrival = _arrival(1, is_read=False, sent_count=second, active_s=0.0)
        assert watch.find_overdue({1: arrival}, float(second)) == {}
    assert watch.find_overdue({1: _arrival(1, active_s=0.0)}, 1_500.0) == {1: DisconnectCause.IDLE}


def test_overdue_when_a_client_waits_between_requests_then_only_idleness_ends_it() -> None:
    watch = _watch()
    assert watch.find_overdue({1: _arrival(5, active_s=0.0)}, _LONG_S) == {}
    assert watch.find_overdue({1: _arrival(5, active_s=0.0)}, _LONG_S + 1) == {
        1: DisconnectCause.IDLE
    }


def test_overdue_when_connections_have_gone_then_nothing_of_them_is_kept() -> None:
    watch = _watch()
    watch.find_overdue({number: _arrival(0) for number in range(100)}, 0.0)
    watch.find_overdue({}, 1.0)
    assert not watch._seen


def test_overdue_when_others_wait_for_memory_then_an_answer_must_be_taken_sooner() -> None:
    """Scenario 115: a client that receives nothing does not starve the others."""
    watch = _watch()
    standing = {1: _arrival(3, sent_count=5), 2: _arrival(3, is_partial=True)}
    watch.find_overdue(standing, 0.0)
    assert watch.find_overdue(standing, 3.0) == {}
    assert watch.find_overdue(standing, 3.0, is_under_memory_pressure=True) == {
        1: DisconnectCause.ANSWER_NOT_TAKEN
    }


def test_overdue_when_others_wait_and_something_is_taken_then_continues() -> None:
    watch = _watch()
    for second in range(10):
        taken = {1: _arrival(3, sent_count=second)}
        assert watch.find_overdue(taken, float(second), is_under_memory_pressure=True) == {}
