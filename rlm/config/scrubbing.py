"""The settings of the scrub, which finds damaged objects before readers do."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rsm.config.section import Section
from rsm.config.values import Count, DurationMs

_Percent = Annotated[int, Field(ge=0, le=100)]
_Rate = Annotated[int, Field(ge=1, le=2**63 - 1)]


class ScrubbingConfig(Section):
    """Checking stored objects of led partitions in the background."""

    interval_ms: DurationMs = Field(
        default=86_400_000,
        validation_alias="remote.scrub.interval.ms",
        description="How often the manager asks the store for length and checksum of each object "
        "of the partitions that its broker leads, in ms. 0 turns the scrub off. Lower values find "
        "a lost object earlier and make more requests. The first pass begins so long after a "
        "start, but no later than 10 minutes after it. Needs a restart.",
    )
    looks_for_stored: bool = Field(
        default=True,
        validation_alias="remote.store.presence.check",
        description="Whether the manager takes a store for another one, or one that is not "
        "mounted, if stored objects are on record and none of those that it looks for is there. "
        "It is not ready then, and copies, trims and deletes nothing. false only where all objects "
        "are really lost, until what the brokers have is copied again. Needs a restart.",
    )
    segments_per_second: Count = Field(
        default=10,
        validation_alias="remote.scrub.max.segments.per.second",
        description="The most segments that are checked in a second. A pass over more segments "
        "than fit into the interval takes longer than that. Needs a restart.",
    )
    read_percent_per_day: _Percent = Field(
        default=1,
        validation_alias="remote.scrub.read.percent.per.day",
        description="Percent of the stored segments that are read each day to compute their "
        "checksums. 1 reads everything once in 100 days; 0 reads nothing, so changed bytes are "
        "found only where the store keeps checksums. Where passes take longer than "
        "remote.scrub.interval.ms it takes more days. Needs a restart.",
    )
    read_bytes_per_second: _Rate = Field(
        default=10_485_760,
        validation_alias="remote.scrub.read.max.bytes.per.second",
        description="The greatest rate of these reads, and of those that check reported objects, "
        "in bytes per second together. Needs a restart.",
    )
