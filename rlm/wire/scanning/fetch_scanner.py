"""Scans a Fetch response in pieces; a visitor sees each partition's fields and may change them.

    correlation id [, tags]                                        the frame's head
    throttle time [, error code, session id], count of topics      versions 7 and up
      name or id, count of partitions                              the id in 13 and up
        partition, error code, high watermark, last stable offset [, log start offset]     5 and up
        count of aborted transactions, (producer id, first offset) each
        [preferred read replica,] length of records, records                               11 and up

In versions 12 and up, tags follow each structure. A change keeps each field's width, so the frame's
size stays correct while it is streamed. The scanner skips records and never reads them. It buffers
at most one partition's fixed fields or one topic's name.

Addresses have no fixed width. So in versions 16 and up, the scanner changes the tag of the leaders'
addresses to an unknown one, and clients ignore them. The client then connects to the leader at its
address from Metadata, as it does with older versions.

Source: FetchResponse.json of kafka-clients, KIP-227, KIP-482, KIP-516, KIP-951.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple, Protocol
from uuid import UUID

from rlm.wire.api.fetch import FETCH
from rlm.wire.scanning.structures import UNKNOWN_TAG, StructureScanner
from rlm.wire.scanning.units import (
    Data,
    count_unit,
    fixed_unit,
    nullable_length_unit,
    string_unit,
    varint_unit,
)
from rsm.segment.errors import CorruptError, UnsupportedError

_NODE_ENDPOINTS_TAG = 0
_NODE_ENDPOINTS_VERSION = 16
_TOPIC_ID_VERSION = 13
_PREFERRED_REPLICA_VERSION = 11
_SESSION_VERSION = 7
_LOG_START_VERSION = 5
_ABORTED_BYTES = 16
_UUID_BYTES = 16
_INT32 = struct.Struct(">i")
_NO_TAGS_BYTES = 3  # Empty tag sections end the last partition, its topic, and the response.


class ScannedResponse(NamedTuple):
    """Represents the fields before the topics; versions below 7 have only the throttle time."""

    throttle_time_ms: int
    error_code: int = 0
    session_id: int = 0


class ScannedPartition(NamedTuple):
    """Represents a partition's fixed fields; version 4 has no log start offset."""

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int = -1


class FetchVisitor(Protocol):
    """Sees the response's parts in order, before the scanner relays them.

    What `response` and `partition` return replaces `found` in the frame. The scanner ignores
    changes of fields that the version does not carry.
    """

    def response(self, found: ScannedResponse) -> ScannedResponse:
        """Handle the start of the response."""
        ...

    def partition(
        self, topic: str | UUID, found: ScannedPartition, *, position: int
    ) -> ScannedPartition:
        """Handle a partition at `position` in the frame; `topic` is its topic's name or id."""
        ...

    def records(self, records_bytes: int) -> None:
        """Handle the length of the current partition's records; 0 for null."""
        ...


class FetchResponseScanner(StructureScanner):
    """Relays one Fetch response in pieces of any size. Not thread-safe.

    `frame_bytes` is the value of the frame's size field. `correlation_id` is None until it arrives.
    """

    def __init__(self, version: int, *, frame_bytes: int, visitor: FetchVisitor) -> None:
        """Raise UnsupportedError if `rlm` does not support the version."""
        if version not in FETCH.versions:
            raise UnsupportedError(
                "cannot scan a Fetch response: its version is unknown", version=version
            )
        super().__init__(self._read_head, self._next_topic, frame_bytes=frame_bytes)
        self.correlation_id: int | None = None
        self._frame_bytes = frame_bytes
        self._visitor = visitor
        self._version = version
        self._flexible = version in FETCH.flexible
        self._response = struct.Struct(">ihi" if version >= _SESSION_VERSION else ">i")
        self._partition = struct.Struct(">ihqqq" if version >= _LOG_START_VERSION else ">ihqq")
        self._preferred_bytes = 4 if version >= _PREFERRED_REPLICA_VERSION else 0
        self._topic: str | UUID = ""
        self._topics_left = 0
        self._partitions_left = 0
        self._aborted_left = 0
        self._is_last_structure = False

    @property
    def left_bytes(self) -> int:
        """Return how many bytes of the frame have not been fed yet; 0 at the response's end."""
        return self._reader.left_bytes

    def _read_head(self, data: Data, position: int) -> int:
        end = fixed_unit(data, position, _INT32.size)
        tag_count, end = varint_unit(data, end) if self._flexible else (0, end)
        (self.correlation_id,) = _INT32.unpack_from(data, position)
        self._skip_tags(tag_count, self._begin_response)
        return end

    def _begin_response(self) -> None:
        self._reader.step = self._read_response

    def _read_response(self, data: Data, position: int) -> int:
        end = fixed_unit(data, position, self._response.size)
        topic_count, end = count_unit(data, end, flexible=self._flexible)
        found = ScannedResponse(*self._response.unpack_from(data, position))
        changed = self._visitor.response(found)
        if changed != found:
            fields = changed if self._version >= _SESSION_VERSION else changed[:1]
            self._response.pack_into(data, position, *fields)
        self._topics_left = topic_count
        self._next_topic()
        return end

    def _read_topic(self, data: Data, position: int) -> int:
        topic, end = self._name_or_id(data, position)
        self._partitions_left, end = count_unit(data, end, flexible=self._flexible)
        self._topic = topic
        self._topics_left -= 1
        self._next_partition()
        return end

    def _read_partition(self, data: Data, position: int) -> int:
        layout = self._partition
        end = fixed_unit(data, position, layout.size)
        found = ScannedPartition(*layout.unpack_from(data, position))
        at = self._reader.base_position + position
        changed = self._visitor.partition(self._topic, found, position=at)
        if changed != found:
            fields = changed if self._version >= _LOG_START_VERSION else changed[:-1]
            layout.pack_into(data, position, *fields)
        self._partitions_left -= 1
        self._reader.step = self._read_aborted_count
        return end

    def _read_aborted_count(self, data: Data, position: int) -> int:
        count, end = nullable_length_unit(data, position, flexible=self._flexible)
        if count == 0:
            # In this usual case, the same unit also contains the records' length.
            return self._read_records(data, end)
        if self._flexible:
            self._aborted_left = count
            self._next_aborted()
        else:
            self._reader.skip_bytes = count * _ABORTED_BYTES
            self._reader.step = self._read_records
        return end

    def _next_aborted(self) -> None:
        self._reader.step = self._read_aborted if self._aborted_left else self._read_records

    def _read_aborted(self, data: Data, position: int) -> int:
        tag_count, end = varint_unit(data, position + _ABORTED_BYTES)
        self._aborted_left -= 1
        self._skip_tags(tag_count, self._next_aborted)
        return end

    def _read_records(self, data: Data, position: int) -> int:
        position += self._preferred_bytes
        records_bytes, end = nullable_length_unit(data, position, flexible=self._flexible)
        self._visitor.records(records_bytes)
        self._reader.skip_bytes = records_bytes
        left_bytes = self._frame_bytes - self._reader.base_position - end - records_bytes
        if self._flexible and left_bytes == _NO_TAGS_BYTES and not self._is_more_to_come:
            # Skip the tag counts with the records, because the scanner changes nothing in them.
            # Clients would reject three bytes that are not three tag counts of 0.
            self._reader.skip_bytes += _NO_TAGS_BYTES
            self._finish()
        else:
            self._end_structure(self._next_partition)
        return end

    @property
    def _is_more_to_come(self) -> bool:
        """Return whether another partition or topic follows the current partition."""
        return bool(self._partitions_left or self._topics_left)

    def _next_partition(self) -> None:
        if self._partitions_left:
            self._reader.step = self._read_partition
        else:
            self._end_structure(self._next_topic)

    def _next_topic(self) -> None:
        if self._topics_left:
            self._reader.step = self._read_topic
        else:
            self._is_last_structure = True
            self._end_structure(self._finish)

    def _finish(self) -> None:
        self._reader.step = None

    def _end_structure(self, then: Callable[[], None]) -> None:
        if self._flexible:
            super()._end_structure(then)
        else:
            then()

    def _see_tag(self, data: Data, position: int, tag: int, size_position: int) -> None:
        if (
            tag == _NODE_ENDPOINTS_TAG
            and self._is_last_structure
            and self._version >= _NODE_ENDPOINTS_VERSION
        ):
            if size_position - position != 1:
                raise CorruptError("a tag is invalid: it is not encoded in its shortest form")
            data[position] = UNKNOWN_TAG

    def _name_or_id(self, data: Data, position: int) -> tuple[str | UUID, int]:
        if self._version >= _TOPIC_ID_VERSION:
            end = fixed_unit(data, position, _UUID_BYTES)
            return UUID(bytes=bytes(data[position:end])), end
        return string_unit(data, position, flexible=self._flexible)
