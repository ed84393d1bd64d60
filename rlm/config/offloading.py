"""Defines the settings of offloads and merges, and the defaults of topics."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from rsm.config.section import Section
from rsm.segment.offload_settings import (
    OFFLOAD_SEGMENT_GREATEST_BYTES,
    OFFLOAD_SEGMENT_LEAST_BYTES,
    OFFLOAD_SEGMENT_LONGEST_MS,
    OFFLOAD_SEGMENT_SHORTEST_MS,
    OffloadMode,
    OffloadSettings,
)

MERGE_ENABLED_KEY = "offload.stream.merge.enabled"
MODE_KEY = "offload.mode"
STREAM_BUFFER_KEY = "offload.stream.buffer.bytes"
ROLLOVER_KEY = "max.offload.segment.rollover.time.ms"

_SegmentBytes = Annotated[
    int, Field(ge=OFFLOAD_SEGMENT_LEAST_BYTES, le=OFFLOAD_SEGMENT_GREATEST_BYTES)
]
_RolloverMs = Annotated[int, Field(ge=OFFLOAD_SEGMENT_SHORTEST_MS, le=OFFLOAD_SEGMENT_LONGEST_MS)]
_MergeRate = Annotated[int, Field(ge=64 << 10, le=2**63 - 1)]
_BufferBytes = Annotated[int, Field(ge=8 << 20, le=2**40)]


class OffloadingConfig(Section):
    """Offloading: rolled segments, or streams."""

    mode: Literal["segment", "stream"] = Field(
        default="segment",
        validation_alias=MODE_KEY,
        description="How the manager offloads topics that have no mode of their own (`rlm topic "
        "set --offload-mode`). `segment`: it copies log segments that the broker rolled. `stream`: "
        "it stores the log while it grows, as offload segments (PIP-76).",
    )
    segment_max_bytes: _SegmentBytes = Field(
        default=1 << 30,
        validation_alias="max.size.per.offload.segment.bytes",
        description="Size at which an offload segment of a stream ends (PIP-76). Applies to topics "
        "without a size of their own (`rlm topic set --offload-segment-max-bytes`). Lower: more "
        "and smaller objects. Higher: fewer requests, and more data to send again after a failure.",
    )
    segment_rollover_ms: _RolloverMs = Field(
        default=600_000,
        validation_alias=ROLLOVER_KEY,
        description="Time after which an offload segment of a stream ends (PIP-76). Data is stored "
        "after at most this time, plus the time to complete the object and any wait for a free "
        "stream. Applies to topics without a time of their own (`rlm topic set "
        "--offload-segment-rollover-ms`). `rlm` refuses a topic with a shorter total or local "
        "retention. If you raise this value later, a topic's shorter retention limits it. Lower: "
        "less data is lost if all local disks fail, and objects are smaller.",
    )
    stream_buffer_bytes: _BufferBytes = Field(
        default=256 << 20,
        validation_alias=STREAM_BUFFER_KEY,
        description="Maximum memory of all streams of the manager for data that the store has not "
        "acknowledged yet. Set at least the size of one part of an upload. This memory limits how "
        "many streams write at once. On `s3` and `azure`, streams use at most half of the memory "
        "of all uploads (`rsm.config.storage.s3.upload.memory.bytes`, "
        "`rsm.config.storage.azure.upload.memory.bytes`). Higher: more partitions stream at once, "
        "but on these two stores only up to that half.",
    )
    merges_streams: bool = Field(
        default=True,
        validation_alias=MERGE_ENABLED_KEY,
        description="Whether the manager merges small segments of streamed partitions in the "
        "background. `true`: less metadata, fewer and larger objects, and faster reads of old "
        "data, but each byte is read and written a few more times. `false`: until they expire, "
        "objects keep the size that the rollover time gave them.",
    )
    merge_bytes_per_second: _MergeRate = Field(
        default=16 << 20,
        validation_alias="offload.stream.merge.max.bytes.per.second",
        description="Maximum bytes per second that all merges of the manager together write. "
        "Merges read as many bytes. Lower: less traffic. Higher: small segments are merged sooner. "
        "`rlm_stream_merge_waiting_bytes` shows whether the rate suffices.",
    )

    def settings(self) -> OffloadSettings:
        """Return the settings of topics that have none of their own."""
        return OffloadSettings(
            mode=OffloadMode[self.mode.upper()],
            segment_max_bytes=self.segment_max_bytes,
            segment_rollover_ms=self.segment_rollover_ms,
        )


_UNLIMITED, _AS_TOTAL = -1, -2
_Limit = Annotated[int, Field(ge=-1, le=2**63 - 1)]
_LocalLimit = Annotated[int, Field(ge=-2, le=2**63 - 1)]

_APPLIES = "Applies to topics without a value from `rlm topic set`, `rlm policy` or `rlm apply`. "


class TopicDefaultsConfig(Section):
    """Topics without settings of their own."""

    retention_ms: _Limit | None = Field(
        default=None,
        validation_alias="log.retention.ms",
        description="**Data loss:** with a lower value, the manager deletes older data. Total "
        f"retention in both tiers; -1 is unlimited. {_APPLIES}A topic that had its own "
        "`retention.ms` keeps it. Without this key, the broker's value from before the topic was "
        "tiered applies.",
    )
    retention_bytes: _Limit | None = Field(
        default=None,
        validation_alias="log.retention.bytes",
        description="**Data loss:** with a lower value, the manager deletes older data. Total "
        f"retention of each partition; -1 is unlimited. {_APPLIES}A topic that had its own "
        "`retention.bytes` keeps it. Without this key, the broker's value from before the topic "
        "was tiered applies.",
    )
    local_retention_ms: _LocalLimit | None = Field(
        default=None,
        validation_alias="log.local.retention.ms",
        description="Retention in the local log (KIP-405). -2 is the total retention, which also "
        f"applies if this key is not set; -1 is unlimited. {_APPLIES}Lower: less local disk, and "
        "more reads from the store.",
    )
    local_retention_bytes: _LocalLimit | None = Field(
        default=None,
        validation_alias="log.local.retention.bytes",
        description="Retention in the local log of each partition (KIP-405). -2 is the total "
        f"retention, which also applies if this key is not set; -1 is unlimited. {_APPLIES}Lower: "
        "less local disk, and more reads from the store.",
    )
    copy_lag_ms: _Limit | None = Field(
        default=None,
        validation_alias="log.remote.copy.lag.ms",
        description="Age at which a rolled segment is copied (KIP-1241). 0 copies it at once, as "
        f"if this key were not set; -1 uses the local retention. {_APPLIES}Higher: less data is "
        "stored that expires soon, but more data is lost if a broker's disks fail.",
    )
    copy_lag_bytes: _Limit | None = Field(
        default=None,
        validation_alias="log.remote.copy.lag.bytes",
        description="Size of newer segments at which a rolled segment is copied (KIP-1241). 0 "
        "copies it at once, as if this key were not set; -1 uses the local retention. "
        f"{_APPLIES}Higher: less data is stored that expires soon, but more data is lost if a "
        "broker's disks fail. If only one of the two lags is set, it decides alone.",
    )
    copy_lag_since: Literal["newest_record", "roll"] | None = Field(
        default=None,
        validation_alias="log.remote.copy.lag.since",
        description="When `log.remote.copy.lag.ms` starts. `newest_record`, which also applies if "
        "this key is not set: at the timestamp of the segment's newest record. `roll`: when the "
        f"broker rolled the segment (PIP-17). {_APPLIES}",
    )
    outage_policy: Literal["hold", "shed"] | None = Field(
        default=None,
        validation_alias="remote.outage.policy",
        description="**Data loss:** `shed` gives up the oldest unstored data, and records the gap. "
        "What the manager does when the store is unreachable and the disk fills. `hold`, which "
        f"also applies if this key is not set, keeps unstored data. {_APPLIES}",
    )

    @field_validator("local_retention_ms", "local_retention_bytes")
    @classmethod
    def _check_local(cls, value: int | None, info: ValidationInfo) -> int | None:
        """Reject a local retention above the total retention, as Kafka does."""
        total_name = str(info.field_name).removeprefix("local_")
        total = info.data.get(total_name)
        if value in (None, _AS_TOTAL) or total in (None, _UNLIMITED):
            return value
        if value == _UNLIMITED or value > total:
            raise ValueError(f"at most {_key(cls, total_name)}={total}")
        return value

    @field_validator("copy_lag_ms", "copy_lag_bytes")
    @classmethod
    def _check_lag(cls, value: int | None, info: ValidationInfo) -> int | None:
        """Reject a lag above the local retention, or not below the total retention (KIP-1241)."""
        unit = str(info.field_name).removeprefix("copy_lag")
        local, total = info.data.get(f"local_retention{unit}"), info.data.get(f"retention{unit}")
        if value is None or value <= 0:
            return value
        if local is not None and 0 <= local < value:
            raise ValueError(f"at most {_key(cls, f'local_retention{unit}')}={local}")
        if total is not None and 0 <= total <= value:
            raise ValueError(f"below {_key(cls, f'retention{unit}')}={total}")
        return value


def _key(section: type[Section], name: str) -> str:
    return str(section.model_fields[name].validation_alias)
