"""How many clients may be connected."""

from __future__ import annotations

from rlm.gateway.listener.connection_limits import ConnectionRoom, ConnectionSlot
from rlm.gateway.model.disconnect_cause import DisconnectCause


def _refusals(room: ConnectionRoom, addresses: str) -> list[DisconnectCause | None]:
    """Return why each client was refused; the admitted ones stay connected."""
    entered = [room.enter(address) for address in addresses]
    return [None if isinstance(each, ConnectionSlot) else each for each in entered]


def test_enter_when_one_address_has_its_share_then_others_still_come_in() -> None:
    room = ConnectionRoom(limit_count=4, limit_count_of_address=2)
    assert _refusals(room, "aaa") == [None, None, DisconnectCause.TOO_MANY_CONNECTIONS_OF_ADDRESS]
    assert _refusals(room, "bcd") == [None, None, DisconnectCause.TOO_MANY_CONNECTIONS]


def test_leave_when_all_have_gone_then_nothing_is_kept() -> None:
    room = ConnectionRoom(limit_count=1, limit_count_of_address=1)
    for number in range(100):
        slot = room.enter(str(number))
        assert isinstance(slot, ConnectionSlot)
        slot.leave()
    assert room.taken_count == 0
    assert not room._of_address


def test_leave_when_called_twice_then_counts_once() -> None:
    room = ConnectionRoom(limit_count=4, limit_count_of_address=4)
    first, _ = room.enter("a"), room.enter("a")
    assert isinstance(first, ConnectionSlot)

    first.leave()
    first.leave()

    assert room.taken_count == 1
