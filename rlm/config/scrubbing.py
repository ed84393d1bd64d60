"""Defines the settings of the scrub, which finds damaged objects before readers do."""

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
        description="How often the manager asks the store for the length and checksum of each "
        "object of the partitions that its broker leads. 0: no scrub. Lower: the scrub finds a "
        "lost object earlier, and sends more requests. After a start, the first pass begins after "
        "this time or 10 minutes, whichever is shorter.",
    )
    looks_for_stored: bool = Field(
        default=True,
        validation_alias="remote.store.presence.check",
        description="**Data loss:** with `false`, a wrong or unmounted store does not stop trims "
        "of records that only the right store has. Whether the manager stops its work if the store "
        "has none of the recorded objects that it looks for. The manager is then not ready, and "
        "does not copy, trim or delete. Set `false` only if all objects are lost, and only until "
        "the brokers' data is copied again.",
    )
    segments_per_second: Count = Field(
        default=10,
        validation_alias="remote.scrub.max.segments.per.second",
        description="Maximum number of segments that the scrub checks in a second. Higher: more "
        "requests to the store. If the value is too low, a pass takes longer than "
        "`remote.scrub.interval.ms`.",
    )
    read_percent_per_day: _Percent = Field(
        default=1,
        validation_alias="remote.scrub.read.percent.per.day",
        description="Percentage of the stored segments that the scrub reads each day to compute "
        "their checksums. 1 reads each segment once in 100 days. 0 reads nothing: the scrub then "
        "finds changed bytes only if the store keeps checksums. If a pass takes longer than "
        "`remote.scrub.interval.ms`, reading all segments takes more days.",
    )
    read_bytes_per_second: _Rate = Field(
        default=10_485_760,
        validation_alias="remote.scrub.read.max.bytes.per.second",
        description="Maximum bytes per second that the scrub and the check of damaged objects "
        "together read from the store. Lower: less traffic. Higher: the manager finds damaged "
        "objects earlier.",
    )
