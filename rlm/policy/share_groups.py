"""Blocks trims of records that share groups (KIP-932) still need. Pure.

**Data loss:** a share group would skip trimmed records: its broker moves it to the broker's log
start without an error, and no gateway can prevent it. Expiry is not a trim: share groups lose
expired records also on a broker that does not tier.
"""

from __future__ import annotations

from rlm.facts.share_group_start import HiddenShareGroupsError, ShareGroupStart
from rlm.policy.blocked import Blocked
from rlm.policy.trim_gate import TrimDecision, expired_end
from rlm.policy.view import PartitionView
from rsm.segment.errors import TieredStorageError

_BLOCKED = "share_group"
_UNKNOWN = "share_groups_unknown"
_HIDDEN = "share_groups_hidden"
SHARE_GROUP_REASONS = frozenset({_BLOCKED, _UNKNOWN, _HIDDEN})


def limit_by_share_groups(
    view: PartitionView,
    decision: TrimDecision,
    start: ShareGroupStart | TieredStorageError | None,
) -> TrimDecision:
    """Limit a trim to the last segment end at or below the lowest start of any group.

    Records below the log start are trimmed in any case. `start` is None if no group reads the
    partition, and an error if the groups are unknown.
    """
    expired = expired_end(view) or 0
    if start is None or decision.offset is None or decision.offset <= expired:
        return decision
    if isinstance(start, ShareGroupStart):
        if start.offset >= decision.offset:
            return decision
        limit_offset = start.offset
        values: dict[str, int | str] = {"group": start.group, "group_start_offset": start.offset}
        blocked = Blocked(reason=_BLOCKED, values=values)
    else:
        limit_offset = view.local_start_offset
        reason = _HIDDEN if isinstance(start, HiddenShareGroupsError) else _UNKNOWN
        blocked = Blocked(reason=reason, values={"problem": str(start)})
    ends = (segment.offsets.end_offset for segment in view.local.rolled)
    below = max((end for end in ends if view.local_start_offset < end <= limit_offset), default=0)
    if below == expired == 0:
        return TrimDecision(blocked=blocked)
    if below <= expired:
        rule = f"below log start {view.state.log_start_offset}"
        return TrimDecision(offset=expired, rule=rule, blocked=blocked)
    return TrimDecision(offset=below, rule=decision.rule, blocked=blocked)
