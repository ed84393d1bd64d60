"""What goes to a client: in order, in large pieces, and not before it is taken."""

from __future__ import annotations

import asyncio

from rlm.gateway.actions import AnswerToClient
from rlm.gateway.client_output import ClientOutput

_LARGE = b"x" * 600_000


class _Transport(asyncio.Transport):
    """Has enough after every write, if told so."""

    def __init__(self, *, fills: bool = False) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.fills = fills
        self.output = ClientOutput(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        if self.fills:
            self.output.pause()


def test_answer_when_it_has_small_parts_then_they_leave_as_one() -> None:
    transport = _Transport()
    released: list[bool] = []

    transport.output.answer(
        AnswerToClient(
            parts=[b"a", b"b", _LARGE[:20_000], b"c"], release=lambda: released.append(True)
        )
    )

    assert [len(each) for each in transport.written] == [2, 20_000, 1]
    assert released == [True]


def test_answer_when_the_client_is_slow_then_is_released_only_when_all_of_it_was_taken() -> None:
    transport = _Transport(fills=True)
    released: list[bool] = []
    transport.output.answer(AnswerToClient(parts=[_LARGE], release=lambda: released.append(True)))
    assert transport.output.is_blocked
    assert sum(map(len, transport.written)) < len(_LARGE)
    assert released == []

    while transport.output.is_blocked:
        transport.output.resume()

    assert b"".join(transport.written) == _LARGE
    assert released == [True]


def test_write_when_an_answer_waits_then_comes_behind_it_whatever_becomes_of_the_buffer() -> None:
    transport = _Transport(fills=True)
    transport.output.answer(AnswerToClient(parts=[_LARGE], release=lambda: None))
    buffer = bytearray(b"behind")

    transport.output.write(memoryview(buffer))
    buffer[:] = b"reused"
    while transport.output.is_blocked:
        transport.output.resume()

    assert b"".join(transport.written) == _LARGE + b"behind"


def test_drop_when_an_answer_waits_then_releases_it() -> None:
    transport = _Transport(fills=True)
    released: list[bool] = []
    transport.output.answer(AnswerToClient(parts=[_LARGE], release=lambda: released.append(True)))

    transport.output.drop()

    assert released == [True]
