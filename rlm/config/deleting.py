"""The settings for deletions, and for the safeguards against unwanted ones."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rsm.config.section import Section
from rsm.config.values import Count, DurationMs

_Percent = Annotated[int, Field(ge=1, le=100)]


class DeletingConfig(Section):
    """Deleting what is stored, and when what is stored leaves the local log."""

    expiry_max_percent: _Percent = Field(
        default=50,
        validation_alias="remote.expiry.max.percent.per.cycle",
        description="Of a partition's segments at most so many percent expire in one cycle, but "
        "one at least: a retention that is too short by mistake is seen before all is gone. What "
        "clients delete is not held back.",
    )
    unreferenced_grace_ms: DurationMs = Field(
        default=604_800_000,
        validation_alias="remote.unreferenced.grace.ms",
        description="How long segments stay stored that an unclean election cut off from the log.",
    )
    hold_after_loss: bool = Field(
        default=True,
        validation_alias="remote.unclean.election.hold",
        description="Trim and delete nothing of a partition whose log lost in an unclean election "
        "what was stored of it, until `rlm topic resolve`. Copying goes on.",
    )
    trim_lag_ms: DurationMs = Field(
        default=0,
        validation_alias="remote.local.trim.deletion.lag.ms",
        description="How long a segment stays in the local log after it was stored, whatever local "
        "retention says (PIP-17's deletion lag, 4 hours there). Applies to topics without a lag of "
        "their own (`rlm topic set --local-deletion-lag-ms`). Raising it needs more local disk and "
        "keeps records on the brokers for longer should the store lose them. Needs a restart.",
    )
    accept_hidden_share_groups: bool = Field(
        default=False,
        validation_alias="remote.local.trim.accept.hidden.share.groups",
        description="Trim although the user of client.* lacks Describe on the cluster. Data loss: "
        "without that right, brokers omit share groups from their answers. Those groups do not "
        "block trimming, and their unread records can be trimmed. Needs a restart.",
    )
    max_retrying_segments: Count = Field(
        default=1_000,
        validation_alias="remote.delete.max.retrying.segments",
        description="So many segments at most are tried to be deleted again; a further one whose "
        "deletion fails becomes a dead letter at once.",
    )
    topic_grace_ms: DurationMs = Field(
        default=300_000,
        validation_alias="remote.topic.deletion.grace.ms",
        description="How long a tiered topic must be unknown to every live broker before what is "
        "stored of it is deleted.",
    )
