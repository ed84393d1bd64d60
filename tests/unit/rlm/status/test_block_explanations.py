"""Which blocks a person should act on, and their explanations."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import pytest

from rlm.policy.blocked import Blocked
from rlm.status.block_explanations import (
    LONG_UNSTABLE_MS,
    BlockedWork,
    BlockExplanation,
    explain_block,
)
from tests.unit.rlm.status.status_rows import tip_of

COPY, TRIM, EXPIRY = BlockedWork.COPY, BlockedWork.TRIM, BlockedWork.EXPIRY


def explained(
    work: BlockedWork, reason: str, *, age_ms: int | None = None, **values: int | str
) -> BlockExplanation | None:
    return explain_block(work, Blocked(reason=reason, values=values), tip_of(), age_ms=age_ms)


@pytest.mark.parametrize(
    ("work", "reason", "values", "text", "command"),
    [
        (COPY, "paused", {}, "copies blocked: `rlm pause` is active", "rlm resume orders copy"),
        (TRIM, "paused", {}, "trims blocked: `rlm pause` is active", "rlm resume orders trim"),
        (EXPIRY, "paused", {}, "expiry blocked: `rlm pause` is active", "rlm resume orders delete"),
        (
            COPY,
            "unsupported_topic",
            {"rule": "cleanup.policy=compact"},
            "copies blocked: the topic's settings do not allow tiering: cleanup.policy=compact",
            "rlm topic disable orders --dry-run",
        ),
        (
            TRIM,
            "lineage_conflict",
            {"offset": 7},
            "trims blocked: the broker's leader epochs contradict the stored ones",
            "rlm explain orders:0 7",
        ),
        (
            COPY,
            "corrupt",
            {"base_offset": 9, "cause": "CRC"},
            "copies blocked: a segment fails its checks: CRC",
            "rlm explain orders:0 9",
        ),
        (
            COPY,
            "policy_not_active",
            {"state": "ENABLING"},
            "copies blocked: the topic is ENABLING because `rlm topic set` did not finish",
            "rlm topic set orders",
        ),
        (
            TRIM,
            "policy_not_active",
            {"state": "DISABLING"},
            "trims blocked: the topic is DISABLING because `rlm topic disable` did not finish",
            "rlm topic disable orders",
        ),
        (
            TRIM,
            "share_group",
            {"group": "g"},
            "trims blocked: share group g has not acknowledged older records",
            "kafka-share-groups.sh --describe --group g",
        ),
        (
            EXPIRY,
            "share_per_cycle",
            {"max_percent_per_cycle": 50},
            "expiry blocked: more than 50 percent of the partition is past its retention",
            "rlm retention run orders --dry-run",
        ),
        (
            COPY,
            "stopped",
            {},
            "copies blocked: a segment cannot be stored: ?",
            "rlm explain orders:0 ?",
        ),
        (TRIM, "new_rule", {}, "trims blocked: new_rule", "rlm status orders:0 --wide"),
    ],
)
def test_block_when_a_person_should_act_then_why_and_what_to_type(
    work: BlockedWork, reason: str, values: Mapping[str, int | str], text: str, command: str
) -> None:
    found = explain_block(work, Blocked(reason=reason, values=values), tip_of())

    assert found == BlockExplanation(text=text, command=command)


def test_block_when_a_client_chose_a_name_of_shell_syntax_then_the_command_quotes_it() -> None:
    found = explained(TRIM, "share_group", group="a; rm -rf $HOME")

    assert found is not None
    assert shlex.split(found.command)[-1] == "a; rm -rf $HOME"
    assert "share group a; rm -rf $HOME has" in found.text


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (COPY, "copy_lag"),
        (COPY, "partition_deleted"),
        (TRIM, "not_stored"),
        (TRIM, "newest_rolled_segment"),
        (TRIM, "younger_than_min_age"),
        (TRIM, "within_margin"),
        (TRIM, "within_deletion_lag"),
        (TRIM, "gateway_behind"),
        (TRIM, "above_high_watermark"),
        (TRIM, "log_start_not_recorded"),
        (TRIM, "gap_not_recorded"),
        (EXPIRY, "gateway_behind"),
    ],
)
def test_block_when_it_ends_by_itself_then_nobody_need_act(work: BlockedWork, reason: str) -> None:
    assert explained(work, reason) is None


def test_failing_copy_when_it_was_tried_once_then_nobody_need_act() -> None:
    assert explained(COPY, "failing", cause="timeout", attempts=1) is None
    assert explained(COPY, "failing", cause="timeout", attempts=2) is not None


@pytest.mark.parametrize("age_ms", [None, LONG_UNSTABLE_MS - 1])
def test_unstable_segment_when_young_or_of_unknown_age_then_nobody_need_act(
    age_ms: int | None,
) -> None:
    assert explained(COPY, "not_stable_yet", age_ms=age_ms, last_stable_offset=5) is None


def test_unstable_segment_when_old_then_a_transaction_or_the_followers() -> None:
    old = LONG_UNSTABLE_MS
    transaction = explained(
        COPY, "not_stable_yet", age_ms=old, last_stable_offset=5, high_watermark=9
    )
    followers = explained(
        COPY, "not_stable_yet", age_ms=old, last_stable_offset=5, high_watermark=5
    )

    assert transaction == BlockExplanation(
        text="copies blocked: a transaction that began at offset 5 is still open",
        command="kafka-transactions.sh find-hanging --topic orders",
    )
    assert followers == BlockExplanation(
        text="copies blocked: the followers do not replicate",
        command="kafka-topics.sh --describe --topic orders",
    )


@pytest.mark.parametrize(
    ("age_ms", "replicated", "is_shown"),
    [(59_999, 9, False), (60_000, 9, True), (60_000, 5, False), (LONG_UNSTABLE_MS, 5, True)],
)
def test_unstable_segment_when_the_broker_limits_transactions_then_its_limit_is_for_them_alone(
    age_ms: int, replicated: int, *, is_shown: bool
) -> None:
    blocked = Blocked(
        reason="not_stable_yet", values={"last_stable_offset": 5, "high_watermark": replicated}
    )

    found = explain_block(COPY, blocked, tip_of(), age_ms=age_ms, transaction_max_ms=60_000)

    assert (found is not None) is is_shown


@pytest.mark.parametrize("work", [COPY, TRIM, EXPIRY])
def test_block_when_the_topic_is_disabled_then_nothing_to_do(work: BlockedWork) -> None:
    """Its stored data is kept, and new segments are not copied."""
    assert explained(work, "policy_not_active", state="DISABLED") is None
