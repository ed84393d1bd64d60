"""Shows what a shorter retention expires, and asks before managers delete the data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from uuid import UUID

from rlm.cli.invocation.amounts import age_text, size_text
from rlm.cli.invocation.consent import confirm_loss
from rlm.cli.invocation.session import CommandSession
from rlm.policy.retention import Limits, LogPiece, breaches, stored_pieces
from rlm.policy.topic.topic_policy import lowered_retentions
from rlmm.events.policy import UNLIMITED, PolicySetting, PolicyState, TopicPolicy
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.coverage import stored_ranges
from rsm.segment.ids import TopicIdPartition

_TIERED = frozenset({PolicyState.ENABLING, PolicyState.ACTIVE})


def expiry_lines(
    session: CommandSession,
    changes: Iterable[tuple[TopicPolicy | None, TopicPolicy | None]],
    *,
    unlimited: Collection[UUID] = (),
) -> Iterator[str]:
    """Yield a line for each policy whose total retention decreases: its limits and their effect.

    `changes` are the policies of topics before and after the change. For a topic that was not
    tiered, the broker's limits applied before. `unlimited` contains the ids of untiered topics for
    which the broker has no limit.
    """
    for before, after in changes:
        if after is None or after == before:
            continue
        is_unlimited = before is None and after.topic_id in unlimited
        limited = _without_limits(after) if is_unlimited else _limits_before(before, after)
        lowered = lowered_retentions(limited, after)
        if lowered:
            limits = ", ".join(
                f"{each.field} {_limit_text(each, limited)} -> {_limit_text(each, after)}"
                for each in lowered
            )
            if before is None:
                yield f"topic {after.topic}: {limits}: older data on the broker expires"
                continue
            expiring = _expiring(session.metadata, session.clock, after)
            size = size_text(sum(piece.size_bytes for piece in expiring))
            yield (
                f"topic {after.topic}: {limits}: stored segments that expire: at least"
                f" {len(expiring)}, {size}"
            )


def _limits_before(before: TopicPolicy | None, after: TopicPolicy) -> TopicPolicy:
    """Return `after` with the total retention that applied before the change.

    After tiering has ended, the broker's own limits apply to its data, and the policy's limits to
    stored data: the longer limit counts.
    """
    return replace(
        after,
        retention_ms=_limit_before(before, after, PolicySetting.RETENTION_MS),
        retention_bytes=_limit_before(before, after, PolicySetting.RETENTION_BYTES),
    )


def _without_limits(policy: TopicPolicy) -> TopicPolicy:
    return replace(policy, retention_ms=UNLIMITED, retention_bytes=UNLIMITED)


def _limit_before(before: TopicPolicy | None, after: TopicPolicy, setting: PolicySetting) -> int:
    known = [] if before is None else [getattr(before, setting.field)]
    untiered = getattr(after, f"untiered_{setting.field}")
    if untiered is not None and (before is None or before.state not in _TIERED):
        known.append(untiered)
    return UNLIMITED if not known or UNLIMITED in known else max(known)


def confirm_expiry(session: CommandSession, lines: Iterable[str], *, yes: bool) -> CommandSession:
    """Show `lines` and ask, if there are any; return the session to continue with.

    Raises the errors of `confirm`.
    """
    question = "Shorten the retention, so that managers delete this data?"
    return confirm_loss(session, lines, question, yes=yes)


def _expiring(
    metadata: RemoteLogMetadataManager, clock: Clock, policy: TopicPolicy
) -> tuple[LogPiece, ...]:
    """Return the stored segments that the policy's total retention expires now.

    Ignores data that is not stored, so more may expire.
    """
    return tuple(
        piece
        for tip in metadata.partitions_of(policy.topic_id, policy.topic)
        for piece in _expiring_in(metadata, tip, policy, clock.wall_ms())
    )


def _expiring_in(
    metadata: RemoteLogMetadataManager, tip: TopicIdPartition, policy: TopicPolicy, wall_ms: int
) -> tuple[LogPiece, ...]:
    state = metadata.partition_state(tip)
    segments = (record.metadata for record in metadata.list_remote_log_segments(tip))
    pieces = stored_pieces(
        stored_ranges(state.lineage, segments), from_offset=state.log_start_offset or 0
    )
    found = breaches(
        pieces,
        Limits(retention_ms=policy.retention_ms, retention_bytes=policy.retention_bytes),
        total_bytes=sum(piece.size_bytes for piece in pieces),
        wall_ms=wall_ms,
    )
    return tuple(each.piece for each in found)


def _limit_text(setting: PolicySetting, policy: TopicPolicy) -> str:
    limit = getattr(policy, setting.field)
    if limit < 0:
        return "unlimited"
    return age_text(limit) if setting is PolicySetting.RETENTION_MS else size_text(limit)
