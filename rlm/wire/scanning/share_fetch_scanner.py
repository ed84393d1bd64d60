"""Scans a ShareFetch response in pieces, and hides the brokers' addresses from clients.

    correlation id, tags                                            the frame's head
    throttle time, error code, error message, lock timeout, count of topics
      id, count of partitions
        partition, error code and message, acknowledge error code and message
        current leader (id, epoch, tags)
        length of records, records
        count of acquired ranges, (first offset, last offset, delivery count, tags) each
    node endpoints, tags

Tags follow each structure. The scanner skips records and never reads them. Addresses vary in
length, but the frame's size comes first and must stay correct. So if the response has endpoints,
the scanner sets their count to 0. It changes the endpoints and all bytes after them to one unknown
tagged field. The client then connects to the current leader at its address from Metadata.

Source: ShareFetchResponse.json of kafka-clients, KIP-482, KIP-932, KIP-951.
"""

from __future__ import annotations

from rlm.wire.api.share_fetch import SHARE_FETCH
from rlm.wire.scanning.structures import UNKNOWN_TAG, StructureScanner
from rlm.wire.scanning.units import (
    Data,
    compact_nullable_string_unit,
    count_unit,
    fixed_unit,
    nullable_length_unit,
    varint_unit,
)
from rsm.segment.errors import CorruptError, UnsupportedError

_CORRELATION_ID_BYTES = 4
_THROTTLE_AND_ERROR_BYTES = 6
_LOCK_TIMEOUT_BYTES = 4
_TOPIC_ID_BYTES = 16
_PARTITION_AND_ERROR_BYTES = 6
_ERROR_BYTES = 2
_LEADER_BYTES = 8
_ACQUIRED_BYTES = 18
_NO_ENDPOINTS = bytes((1, 1, UNKNOWN_TAG))  # count 0, one tagged field, its tag
_VARINT_BITS = 7


class ShareFetchScanner(StructureScanner):
    """Relays one ShareFetch response in pieces of any size. Not thread-safe.

    `frame_bytes` is the value of the frame's size field, which the scan does not change.
    """

    def __init__(self, version: int, *, frame_bytes: int) -> None:
        """Raise UnsupportedError if `rlm` does not support the version."""
        if version not in SHARE_FETCH.versions:
            raise UnsupportedError(
                "cannot scan a ShareFetch response: its version is unknown", version=version
            )
        super().__init__(self._read_head, self._next_topic, frame_bytes=frame_bytes)
        self.frame_bytes = frame_bytes
        self._topics_left = 0
        self._partitions_left = 0
        self._acquired_left = 0

    def _read_head(self, data: Data, position: int) -> int:
        tag_count, end = varint_unit(data, position + _CORRELATION_ID_BYTES)
        self._skip_tags(tag_count, self._begin_response)
        return end

    def _begin_response(self) -> None:
        self._reader.step = self._read_response

    def _read_response(self, data: Data, position: int) -> int:
        end = compact_nullable_string_unit(data, position + _THROTTLE_AND_ERROR_BYTES)
        topic_count, end = count_unit(data, end + _LOCK_TIMEOUT_BYTES, flexible=True)
        self._topics_left = topic_count
        self._next_topic()
        return end

    def _next_topic(self) -> None:
        self._reader.step = self._read_topic if self._topics_left else self._read_endpoints

    def _read_topic(self, data: Data, position: int) -> int:
        partition_count, end = count_unit(data, position + _TOPIC_ID_BYTES, flexible=True)
        self._topics_left -= 1
        self._partitions_left = partition_count
        self._next_partition()
        return end

    def _next_partition(self) -> None:
        if self._partitions_left:
            self._reader.step = self._read_partition
        else:
            self._end_structure(self._next_topic)

    def _read_partition(self, data: Data, position: int) -> int:
        end = compact_nullable_string_unit(data, position + _PARTITION_AND_ERROR_BYTES)
        end = compact_nullable_string_unit(data, end + _ERROR_BYTES)
        tag_count, end = varint_unit(data, end + _LEADER_BYTES)
        self._partitions_left -= 1
        self._skip_tags(tag_count, self._begin_records)
        return end

    def _begin_records(self) -> None:
        self._reader.step = self._read_records

    def _read_records(self, data: Data, position: int) -> int:
        records_bytes, end = nullable_length_unit(data, position, flexible=True)
        self._reader.skip_bytes = records_bytes
        self._reader.step = self._read_acquired_count
        return end

    def _read_acquired_count(self, data: Data, position: int) -> int:
        self._acquired_left, end = count_unit(data, position, flexible=True)
        self._next_acquired()
        return end

    def _next_acquired(self) -> None:
        if self._acquired_left:
            self._reader.step = self._read_acquired
        else:
            self._end_structure(self._next_partition)

    def _read_acquired(self, data: Data, position: int) -> int:
        tag_count, end = varint_unit(data, position + _ACQUIRED_BYTES)
        self._acquired_left -= 1
        self._skip_tags(tag_count, self._next_acquired)
        return end

    def _read_endpoints(self, data: Data, position: int) -> int:
        """Read the count of endpoints, hide any endpoints, and skip the rest of the frame."""
        left_bytes = self.frame_bytes - (self._reader.base_position + position)
        count, end = count_unit(data, position, flexible=True)
        if count:
            hidden = _hidden(left_bytes)
            end = fixed_unit(data, position, len(hidden))
            data[position:end] = hidden
        self._reader.skip_bytes = left_bytes - (end - position)
        self._reader.step = None
        return end


def _hidden(left_bytes: int) -> bytes:
    """Return the bytes that hide the endpoints.

    They overwrite the start of the frame's last `left_bytes` bytes.
    The tagged field's size is a varint; its width is chosen so that the field ends with the frame.
    """
    for width in range(1, 6):
        size_bytes = left_bytes - len(_NO_ENDPOINTS) - width
        if 0 <= size_bytes < 1 << _VARINT_BITS * width:
            groups = [size_bytes >> _VARINT_BITS * each & 0x7F for each in range(width)]
            return _NO_ENDPOINTS + bytes([*(each | 0x80 for each in groups[:-1]), groups[-1]])
    raise CorruptError(
        "cannot hide the endpoints: the frame ends within them", left_bytes=left_bytes
    )
