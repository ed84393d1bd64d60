"""Defines the settings for the speed of copies, and for outages of the store."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rlm.config.values import UNLIMITED_BYTES_PER_SECOND
from rsm.config.section import Section
from rsm.config.values import DurationMs, SizeBytes

_IdleMs = Annotated[int, Field(ge=-1, le=2**63 - 1)]
_Rate = Annotated[int, Field(ge=1, le=UNLIMITED_BYTES_PER_SECOND)]


class CopyingConfig(Section):
    """Copying, and outages of the store."""

    bytes_per_second: _Rate = Field(
        default=UNLIMITED_BYTES_PER_SECOND,
        validation_alias="remote.log.manager.copy.max.bytes.per.second",
        description="Maximum bytes per second that all copies of this broker together read and "
        "store, in equal shares. The same limit applies separately to all streams and to all "
        "repairs, so that none delays the others. Lower: less load, and a longer time to catch up "
        "after an outage. The time that a copy waits for this limit does not count against "
        "`remote.copy.attempt.timeout.ms`.",
    )
    custom_metadata_max_bytes: SizeBytes = Field(
        default=128,
        validation_alias="remote.log.metadata.custom.metadata.max.bytes",
        description="Maximum size of the custom metadata (KIP-917) that a remote storage manager "
        "returns after a copy. The segment's record contains it, so higher values allow larger "
        "records in the metadata topic. If a copy returns more, the manager deletes its objects, "
        "and stops copying the partition until the leader changes or the process restarts. The "
        "built-in layouts return none.",
    )
    adaptive_concurrency: bool = Field(
        default=True,
        validation_alias="remote.copy.concurrency.adaptive",
        description="Whether the manager runs fewer copies at once while more would not raise the "
        "throughput, or after the store failed an attempt. `false`: the manager runs up to "
        "`remote.log.manager.copier.thread.pool.size` copies.",
    )
    idle_ms: _IdleMs = Field(
        default=86_400_000,
        validation_alias="remote.log.idle.copy.ms",
        description="Idle time after which the manager copies the committed part of an active "
        "segment, because a broker rolls a segment only when a record arrives. The copy also waits "
        "for the topic's `--copy-lag-ms`. Lower: the end of an idle partition is stored earlier, "
        "in more and smaller segments. -1: never.",
    )
    disk_threshold_percent: Annotated[int, Field(ge=1, le=99)] = Field(
        default=85,
        validation_alias="remote.outage.disk.threshold.percent",
        description="**Data loss:** shed data is in neither tier. Fill level of a disk of "
        "`log.dirs` in percent. Above it, topics with `--outage-policy shed` shed their oldest "
        "data while the store accepts nothing. Higher: topics shed later, and less room is left.",
    )
    shed_interval_ms: DurationMs = Field(
        default=360_000,
        validation_alias="remote.outage.shed.interval.ms",
        description="Minimum time between two sheds on a disk. Set it to at least the sum of the "
        "broker's `log.retention.check.interval.ms` and `log.segment.delete.delay.ms`: the broker "
        "frees the space of shed data only after both. Lower: the manager sheds more than needed.",
    )
