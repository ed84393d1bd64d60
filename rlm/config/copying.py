"""The settings for the speed of copies, and for outages of the store."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rsm.config.section import Section
from rsm.config.values import DurationMs, SizeBytes

_IdleMs = Annotated[int, Field(ge=-1, le=2**63 - 1)]
_Rate = Annotated[int, Field(ge=1, le=2**63 - 1)]


class CopyingConfig(Section):
    """Copying, and outages of the store."""

    bytes_per_second: _Rate = Field(
        default=2**63 - 1,
        validation_alias="remote.log.manager.copy.max.bytes.per.second",
        description="Bytes of segments per second that this broker's copies read and store, in "
        "equal shares; what is behind after an outage is caught up with at this rate. What a copy "
        "waits for it is not counted against `remote.copy.attempt.timeout.ms`. The default is no "
        "limit.",
    )
    custom_metadata_max_bytes: SizeBytes = Field(
        default=128,
        validation_alias="remote.log.metadata.custom.metadata.max.bytes",
        description="The most bytes of custom metadata (KIP-917) that a remote storage manager may "
        "give with a copy; every process keeps them with the segment's record. The objects of a "
        "copy with more are deleted, and its partition's copying stops until the leader changes or "
        "the process restarts. The layouts raw and block_v1 give none. Needs a restart.",
    )
    adaptive_concurrency: bool = Field(
        default=True,
        validation_alias="remote.copy.concurrency.adaptive",
        description="Let fewer segments be copied at once than there are copier threads, as long "
        "as more at once bring nothing, or the store refuses. Off: as many as there are threads.",
    )
    idle_ms: _IdleMs = Field(
        default=86_400_000,
        validation_alias="remote.log.idle.copy.ms",
        description="What is committed of a segment that nobody has written to for so long is "
        "copied, though it is not rolled: a broker rolls only when the next record comes. Not "
        "before it is as old as the topic's `--copy-lag-ms` wants. -1: never.",
    )
    disk_threshold_percent: Annotated[int, Field(ge=1, le=99)] = Field(
        default=85,
        validation_alias="remote.outage.disk.threshold.percent",
        description="While the store takes nothing: from how full a disk of `log.dirs` on topics "
        "with `--outage-policy shed` give up their oldest data.",
    )
    shed_interval_ms: DurationMs = Field(
        default=360_000,
        validation_alias="remote.outage.shed.interval.ms",
        description="At most one such step per disk in this time. Not less than the broker's "
        "`log.retention.check.interval.ms` and `log.segment.delete.delay.ms` together: space comes "
        "back only then.",
    )
