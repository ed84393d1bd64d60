"""How many clients may be connected."""

from __future__ import annotations

from rlm.gateway.close_reason import CloseReason
from rlm.gateway.connection_room import ConnectionRoom


def test_enter_when_one_address_has_its_share_then_others_still_come_in() -> None:
    room = ConnectionRoom(limit_count=4, limit_count_of_address=2)
    assert [room.enter("a") for _ in range(3)] == [
        None,
        None,
        CloseReason.TOO_MANY_CONNECTIONS_OF_ADDRESS,
    ]
    assert [room.enter(each) for each in "bcd"] == [None, None, CloseReason.TOO_MANY_CONNECTIONS]


def test_leave_when_all_have_gone_then_nothing_is_kept() -> None:
    room = ConnectionRoom(limit_count=1, limit_count_of_address=1)
    for number in range(100):
        assert room.enter(str(number)) is None
        room.leave(str(number))
    assert room.taken_count == 0
    assert not room._of_address
