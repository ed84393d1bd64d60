"""How an error of rlm prints itself: what failed, why, where, and what to do, in one line."""

from __future__ import annotations

import pytest

from rsm.segment.errors import InvalidConfigError, NotFoundError, RetriableError

REFUSED = RetriableError(
    "cannot connect to the broker",
    address="broker1:9092",
    reason=ConnectionRefusedError(111, "Connection refused"),
)


def test_error_when_it_has_fields_then_they_follow_the_message() -> None:
    error = NotFoundError("the offset is deleted", partition="orders-0", offset=7)

    assert str(error) == "the offset is deleted (partition=orders-0, offset=7)"


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("no answer", "the store failed: no answer (name=x)"),
        (TimeoutError("timed out"), "the store failed: timed out (name=x)"),
        (ValueError(), "the store failed: ValueError (name=x)"),
        (
            FileNotFoundError(2, "No such file", "/a"),
            "the store failed: [Errno 2] No such file: '/a' (name=x)",
        ),
        (None, "the store failed (name=x)"),
        ("", "the store failed (name=x)"),
    ],
)
def test_error_when_it_has_a_reason_then_the_reason_follows_the_message(
    reason: object, text: str
) -> None:
    assert str(RetriableError("the store failed", name="x", reason=reason)) == text


def test_error_when_its_reason_is_an_error_of_rlm_then_both_are_one_line_with_one_list() -> None:
    middle = RetriableError("no bootstrap server answers", servers="broker1:9092", reason=REFUSED)

    error = InvalidConfigError("cluster cannot be reached", servers="broker1:9092", reason=middle)

    assert str(error) == (
        "cluster cannot be reached: no bootstrap server answers: cannot connect to the broker: "
        "Connection refused (servers=broker1:9092, address=broker1:9092)"
    )


def test_error_when_it_has_advice_then_the_advice_comes_last() -> None:
    error = RetriableError("the manager cannot be reached", advice="Check its address")

    assert str(error) == "the manager cannot be reached. Check its address."


def test_error_when_it_and_its_reason_have_advice_then_its_own_counts() -> None:
    inner = RetriableError("no answer", advice="Wait")

    assert str(RetriableError("failed", reason=inner)) == "failed: no answer. Wait."
    assert str(RetriableError("failed", reason=inner, advice="Ask")) == "failed: no answer. Ask."
