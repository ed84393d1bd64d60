"""The settings of what is deleted, and how carefully."""

from __future__ import annotations

from pydantic import Field

from rlm.config.section import Section
from rlm.config.values import DurationMs


class DeletingConfig(Section):
    """Deleting what is stored."""

    topic_grace_ms: DurationMs = Field(
        default=300_000,
        validation_alias="remote.topic.deletion.grace.ms",
        description="How long a tiered topic must be unknown to every live broker before what is "
        "stored of it is deleted.",
    )
