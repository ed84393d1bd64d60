"""Explains a blocked copy, trim or expiry to an operator, with the next command. Pure.

Only blocks that a person should act on have an explanation. Some of the others end by themselves:
a copy lag, a trim's age or margin, or a transaction that has just begun. For the
rest, such as a deleted topic, the status lists a separate problem. An unknown reason comes from a
newer manager and also needs attention.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from rlm.policy.blocked import Blocked
from rlm.status.failures import COPIES_FAIL, FAILING, LEAST_ATTEMPTS
from rlmm.events.policy import PolicyState
from rsm.segment.ids import TopicIdPartition

LONG_UNSTABLE_MS = 15 * 60_000  # Kafka's default of transaction.max.timeout.ms


class BlockedWork(Enum):
    """Represents the work that is blocked; each value is the task's name in `rlm pause`."""

    COPY = "copy"
    TRIM = "trim"
    EXPIRY = "delete"


_NAMES = {
    BlockedWork.COPY: "copies",
    BlockedWork.TRIM: "trims",
    BlockedWork.EXPIRY: "expiry",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockExplanation:
    """Represents the reason for a block, as text, and the command to type next."""

    text: str
    command: str


# Each reason has a text, which follows "copies blocked: ", "trims blocked: " or "expiry blocked: ",
# and a command. Fields in braces are the block's values, `topic`, `partition` or `task`.
_PROCESSES = "rlm processes"
_STORE = "rlm storage check"
_PAUSED = ("`rlm pause` is active", "rlm resume {topic} {task}")
_OF_LOG = {
    "paused": _PAUSED,
    "unsupported_topic": (
        "the topic's settings do not allow tiering: {rule}",
        "rlm topic disable {topic} --dry-run",
    ),
    "not_owner": ("another process has the newest claim of the partition", _PROCESSES),
    "newer_record": (
        "a newer version of rlm wrote a record that the manager cannot read",
        _PROCESSES,
    ),
    "lineage_conflict": (
        "the broker's leader epochs contradict the stored ones",
        "rlm explain {topic}:{partition} {offset}",
    ),
    "older_than_epochs": (
        "the log begins with records from before leader epochs",
        "rlm explain {topic}:{partition} {epochs_known_from}",
    ),
}
_EXPLANATIONS: Mapping[BlockedWork, Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        BlockedWork.COPY: {
            **_OF_LOG,
            "store_unreachable": ("the store cannot be reached", _STORE),
            "corrupt": (
                "a segment fails its checks: {cause}",
                "rlm explain {topic}:{partition} {base_offset}",
            ),
            "stopped": (
                "a segment cannot be stored: {cause}",
                "rlm explain {topic}:{partition} {base_offset}",
            ),
        },
        BlockedWork.TRIM: {
            **_OF_LOG,
            "anomaly": (
                "a stored object may be damaged: {object}",
                "rlm explain {topic}:{partition} {sound_end_offset}",
            ),
            "anomalies_at_limit": (
                "the number of recorded damaged objects has reached its maximum",
                "rlm topic resolve {topic}:{partition} --dry-run",
            ),
            "share_group": (
                "share group {group} has not acknowledged older records",
                "kafka-share-groups.sh --describe --group {group}",
            ),
            "share_groups_unknown": (
                "the manager cannot list share groups: {problem}",
                "kafka-share-groups.sh --list",
            ),
            "share_groups_hidden": (
                "the Kafka user of rlm lacks Describe on the cluster, so brokers hide share groups",
                "kafka-acls.sh --list --cluster",
            ),
        },
        BlockedWork.EXPIRY: {
            "paused": _PAUSED,
            "read_lease": (
                "a job reads data past its retention: {holder}",
                "rlm leases list {topic}:{partition}",
            ),
            "share_per_cycle": (
                "more than {max_percent_per_cycle} percent of the partition is past its retention",
                "rlm retention run {topic} --dry-run",
            ),
        },
    }
)

# These blocks end by themselves, or the status lists a separate problem for them.
_EXPECTED = {
    BlockedWork.COPY: frozenset({"copy_lag", "partition_deleted"}),
    BlockedWork.TRIM: frozenset(
        {"not_stored", "newest_rolled_segment", "younger_than_min_age", "within_margin"}
        | {"within_deletion_lag", "gateway_behind", "above_high_watermark", "diverged"}
        | {"log_start_not_recorded", "gap_not_recorded"}
    ),
    BlockedWork.EXPIRY: frozenset({"gateway_behind"}),
}


def explain_block(
    work: BlockedWork,
    blocked: Blocked,
    tip: TopicIdPartition,
    *,
    age_ms: int | None = None,
    transaction_max_ms: int = LONG_UNSTABLE_MS,
) -> BlockExplanation | None:
    """Return the explanation of a block; None if nobody needs to act on it.

    `age_ms` is how long the oldest segment has waited for its copy; None if unknown. A transaction
    may stay open for `transaction_max_ms`, the broker's `transaction.max.timeout.ms`.
    """
    reason, name = blocked.reason, _NAMES[work]
    if reason in _EXPECTED[work]:
        return None
    if reason == FAILING:
        return _failing(blocked)
    if reason == "not_stable_yet":
        return _unstable(blocked, tip, age_ms, transaction_max_ms)
    if reason == "policy_not_active":
        return _unfinished(name, blocked, tip)
    texts = _EXPLANATIONS[work].get(reason)
    if texts is None:  # Only a newer manager knows this reason.
        command = f"rlm status {tip.topic}:{tip.partition} --wide"
        return BlockExplanation(text=f"{name} blocked: {reason}", command=command)
    values = _Values({**blocked.values, "task": work.value})
    values.update({"topic": tip.topic, "partition": tip.partition})
    # Clients choose the names of groups: a name must not run as a command in the operator's shell.
    quoted = _Values({key: shlex.quote(str(value)) for key, value in values.items()})
    text, command = texts[0].format_map(values), texts[1].format_map(quoted)
    return BlockExplanation(text=f"{name} blocked: {text}", command=command)


class _Values(dict[str, int | str]):
    """Represents the values of a block. Returns "?" for a value that the manager did not send."""

    def __missing__(self, key: str) -> str:
        return "?"


def _failing(blocked: Blocked) -> BlockExplanation | None:
    if int(blocked.values.get("attempts", LEAST_ATTEMPTS)) < LEAST_ATTEMPTS:
        return None
    cause = blocked.values.get("cause") or blocked.values.get("error") or "unknown"
    return BlockExplanation(text=f"{COPIES_FAIL}: {cause}", command=_STORE)


def _unstable(
    blocked: Blocked, tip: TopicIdPartition, age_ms: int | None, transaction_max_ms: int
) -> BlockExplanation | None:
    """Explain why a segment has waited too long for its replication or for a transaction's end.

    Returns None if it has not waited too long, or if its age is unknown.
    """
    values = blocked.values
    stable, replicated = values.get("last_stable_offset"), values.get("high_watermark")
    is_replication = stable == replicated
    if age_ms is None or age_ms < (LONG_UNSTABLE_MS if is_replication else transaction_max_ms):
        return None
    if is_replication:
        text = "copies blocked: the followers do not replicate"
        return BlockExplanation(
            text=text, command=f"kafka-topics.sh --describe --topic {tip.topic}"
        )
    return BlockExplanation(
        text=f"copies blocked: a transaction that began at offset {stable} is still open",
        command=f"kafka-transactions.sh find-hanging --topic {tip.topic}",
    )


def _unfinished(name: str, blocked: Blocked, tip: TopicIdPartition) -> BlockExplanation | None:
    """Explain that a change of the policy did not finish; running its command again finishes it.

    Returns None if the topic is disabled.
    """
    state = str(blocked.values.get("state", "unknown"))
    if state == PolicyState.DISABLED.name:
        return None
    program = f"rlm topic {'disable' if state.startswith('DISABL') else 'set'}"
    return BlockExplanation(
        text=f"{name} blocked: the topic is {state} because `{program}` did not finish",
        command=f"{program} {tip.topic}",
    )
