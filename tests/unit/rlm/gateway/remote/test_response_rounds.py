"""When responses from the store are sent, and what the loop does in between."""

from __future__ import annotations

import asyncio
from functools import partial

from rlm.gateway.remote.response_rounds import ResponseRounds


def test_answers_when_several_readers_want_one_then_what_passes_comes_in_between() -> None:
    async def act() -> list[str]:
        rounds, happened = ResponseRounds(), list[str]()
        for reader in "abcd":
            if rounds.may_give(reader):
                happened.append(reader)
            else:
                rounds.wait(partial(happened.append, reader))
        for _ in range(5):
            await asyncio.sleep(0)  # a round of the loop
            happened.append("-")
        return happened

    assert "".join(asyncio.run(act())) == "ab-c-d---"


def test_answers_when_one_reads_alone_then_each_is_given_at_once() -> None:
    async def act() -> list[bool]:
        rounds = ResponseRounds()
        rounds.may_give("a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return [rounds.may_give("a") for _ in range(3)]

    assert asyncio.run(act()) == [True, True, True]


def test_answers_when_one_waits_then_none_is_given_before_it() -> None:
    async def act() -> str:
        rounds, happened = ResponseRounds(), list[str]()
        assert rounds.may_give("a")
        rounds.wait(partial(happened.append, "b"))
        assert not rounds.may_give("a")
        rounds.wait(partial(happened.append, "a"))
        for _ in range(3):
            await asyncio.sleep(0)
        return "".join(happened)

    assert asyncio.run(act()) == "ba"
