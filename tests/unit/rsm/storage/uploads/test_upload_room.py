from __future__ import annotations

import threading

from rsm.storage.uploads.upload_room import UploadRoom
from tests.services.waiting import wait_until


def taking(room: UploadRoom, size_bytes: int, taken: list[int]) -> threading.Thread:
    """A thread that waits for room, and reports when it has it."""

    def take() -> None:
        room.take(size_bytes)
        taken.append(size_bytes)

    thread = threading.Thread(target=take)
    thread.start()
    return thread


def test_take_when_the_room_is_full_then_waits_until_enough_is_given_back() -> None:
    room, taken = UploadRoom(100), list[int]()
    room.take(60)
    room.take(40)
    waiting = taking(room, 50, taken)

    room.give_back(40)
    assert not taken
    room.give_back(60)

    waiting.join(30)
    assert taken == [50]


def test_take_when_one_is_larger_than_the_room_then_it_is_alone() -> None:
    room, taken = UploadRoom(100), list[int]()
    room.take(500)

    waiting = taking(room, 1, taken)
    room.give_back(500)

    waiting.join(30)
    assert taken == [1]


def test_take_when_a_large_one_waits_then_later_small_ones_do_not_pass() -> None:
    room, taken = UploadRoom(100), list[int]()
    room.take(60)
    large = taking(room, 90, taken)
    wait_until(lambda: len(room._waiting) == 1, describe="the large one waits")
    small = taking(room, 10, taken)
    wait_until(lambda: len(room._waiting) == 2, describe="the small one waits")

    room.give_back(60)

    large.join(30)
    small.join(30)
    assert taken == [90, 10]


def test_take_when_the_room_is_within_a_full_one_then_waits_for_both() -> None:
    outer, taken = UploadRoom(100), list[int]()
    inner = UploadRoom(50, within=outer)
    outer.take(80)
    waiting = taking(inner, 30, taken)
    wait_until(lambda: len(outer._waiting) == 1, describe="the inner room waits for the outer one")

    outer.give_back(80)

    waiting.join(30)
    assert taken == [30]
    inner.give_back(30)
    outer.take(100)


def test_take_when_the_inner_room_is_full_then_the_rest_of_the_outer_one_is_free() -> None:
    outer, taken = UploadRoom(100), list[int]()
    inner = UploadRoom(50, within=outer)
    inner.take(40)
    waiting = taking(inner, 30, taken)
    wait_until(lambda: len(inner._waiting) == 1, describe="the inner room is full")

    outer.take(60)
    assert not taken
    outer.give_back(60)
    inner.give_back(40)

    waiting.join(30)
    assert taken == [30]
