"""Defines the settings for deletions, and for the safeguards against unwanted ones."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rsm.config.section import Section
from rsm.config.values import Count, DurationMs

_Percent = Annotated[int, Field(ge=1, le=100)]


class DeletingConfig(Section):
    """When stored data is deleted, and when stored segments leave the local log."""

    expiry_max_percent: _Percent = Field(
        default=50,
        validation_alias="remote.expiry.max.percent.per.cycle",
        description="Maximum percentage of a partition's segments that expire in one cycle; at "
        "least one segment can expire. Lower: more time to notice a retention that was set too "
        "short by mistake. DeleteRecords requests of clients are not limited.",
    )
    unreferenced_grace_ms: DurationMs = Field(
        default=604_800_000,
        validation_alias="remote.unreferenced.grace.ms",
        description="How long the store keeps segments that an unclean election cut off from the "
        "log. Lower: less storage, and less time to recover their records.",
    )
    hold_after_loss: bool = Field(
        default=True,
        validation_alias="remote.unclean.election.hold",
        description="**Data loss:** with `false`, the manager deletes stored records that an "
        "unclean election cut off, after `remote.unreferenced.grace.ms`. Whether the manager stops "
        "trims and deletions of the partition after such an election. They stay stopped until you "
        "run `rlm topic resolve`; copies continue.",
    )
    trim_lag_ms: DurationMs = Field(
        default=0,
        validation_alias="remote.local.trim.deletion.lag.ms",
        description="How long a segment stays in the local log after it was stored, regardless of "
        "local retention (PIP-17's deletion lag; 4 hours in Pulsar). Applies to topics without a "
        "lag of their own (`rlm topic set --local-deletion-lag-ms`). Higher: more local disk, and "
        "brokers still have more of the records that the store may lose.",
    )
    accept_hidden_share_groups: bool = Field(
        default=False,
        validation_alias="remote.local.trim.accept.hidden.share.groups",
        description="**Data loss:** with `true`, the manager can trim records that share groups "
        "have not read. Whether the manager trims although the user of `client.*` lacks Describe "
        "on the cluster. Without that right, brokers omit share groups from their responses, so "
        "those groups do not block trimming.",
    )
    max_retrying_segments: Count = Field(
        default=1_000,
        validation_alias="remote.delete.max.retrying.segments",
        description="Maximum number of segments whose failed deletion the manager retries. At the "
        "maximum, the manager writes a dead letter for a further segment as soon as its deletion "
        "fails. Higher: more memory.",
    )
    topic_grace_ms: DurationMs = Field(
        default=300_000,
        validation_alias="remote.topic.deletion.grace.ms",
        description="How long a tiered topic must be unknown to every live broker before the "
        "manager deletes its stored data. Lower: storage is freed earlier, and there is less time "
        "to notice a mistake.",
    )
