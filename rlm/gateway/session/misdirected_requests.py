"""Finds clients whose repeated requests can be served only by another broker. Pure.

Kafka's Java client reads a node's address only when it connects. So a client that was redirected to
this gateway keeps the connection even when Metadata returns another address. The broker refuses
each request with NOT_LEADER_OR_FOLLOWER or NOT_COORDINATOR. Other clients see these errors only
until they know the new leader or coordinator.

This module reads the error code from the start of a response; for Fetch, the session reads it. If a
response has an error code for each partition, the first one counts: a misdirected request names
only partitions of another broker. After the head, a response usually has one of these forms:

    group, transaction   throttle time, error code
    partitions           [throttle time], topics (name or id, partitions (index, error code))

Source: the response schemas of kafka-clients 4.3.1.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from rlm.wire.broker_apis import BROKER_APIS
from rlm.wire.error_codes import ErrorCode
from rlm.wire.reading import read_unsigned_varint
from rsm.segment.errors import CorruptError

LASTING_MS = 10_000
"""How long a broker refuses a client's requests before the client counts as misdirected."""

_REFUSALS = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR})
_HEAD_BYTES = 512  # This is enough, because a topic name has at most 249 bytes.
_CORRELATION_ID_BYTES = 4
_UUID_BYTES = 16
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_NEVER = 1 << 15


class MisdirectedRequests:
    """Represents the refused requests of one connection. Not thread-safe."""

    def __init__(self) -> None:
        self._first_ms = self._last_ms = -LASTING_MS

    def record(self, error_code: int, now_ms: int) -> bool:
        """Record a response's error code; return whether refusals have lasted for LASTING_MS.

        A series of refusals ends when no refusal arrives for LASTING_MS.
        """
        if error_code not in _REFUSALS:
            return False
        if now_ms - self._last_ms >= LASTING_MS:
            self._first_ms = now_ms
        self._last_ms = now_ms
        return now_ms - self._first_ms >= LASTING_MS


class _Form(NamedTuple):
    """Represents the form of a response in version `first_version` and later.

    `before_bytes` precede the error code or the topics, `index_bytes` the error code within a
    partition. In version `topic_ids_from` and later, topics have ids instead of names.
    """

    first_version: int
    before_bytes: int = 4
    is_per_partition: bool = False
    index_bytes: int = 4
    topic_ids_from: int = _NEVER


_OFFSET_COMMIT = _Form(3, is_per_partition=True, topic_ids_from=10)
_ADD_PARTITIONS_TO_TXN = _Form(0, is_per_partition=True), _Form(4)
# If the whole fetch has no error, its error message is null: one byte.
_SHARE_FETCH = _Form(1, before_bytes=11, is_per_partition=True, topic_ids_from=1)
# By API key, ascending by version.
_FORMS: Mapping[int, tuple[_Form, ...]] = MappingProxyType(
    {
        0: (_Form(3, before_bytes=0, is_per_partition=True, topic_ids_from=13),),  # Produce
        2: (_Form(2, is_per_partition=True),),  # ListOffsets
        8: (_OFFSET_COMMIT,),
        11: (_Form(2),),  # JoinGroup
        12: (_Form(1),),  # Heartbeat
        13: (_Form(1),),  # LeaveGroup
        14: (_Form(1),),  # SyncGroup
        21: (_Form(0, is_per_partition=True, index_bytes=12),),  # DeleteRecords
        22: (_Form(0),),  # InitProducerId
        23: (_Form(2, is_per_partition=True, index_bytes=0),),  # OffsetForLeaderEpoch
        24: _ADD_PARTITIONS_TO_TXN,
        25: (_Form(0),),  # AddOffsetsToTxn
        26: (_Form(0),),  # EndTxn
        28: (_Form(0, is_per_partition=True),),  # TxnOffsetCommit
        68: (_Form(0),),  # ConsumerGroupHeartbeat
        76: (_Form(1),),  # ShareGroupHeartbeat
        78: (_SHARE_FETCH,),
        88: (_Form(0),),  # StreamsGroupHeartbeat
    }
)


def first_error_code(
    api_key: int, version: int, data: memoryview, *, frame_bytes: int
) -> int | None:
    """Return the first error code of a response frame; NONE if its form is unknown.

    `data` contains the frame's bytes so far, without its size field. Returns None if more bytes are
    needed.
    """
    form = next((f for f in reversed(_FORMS.get(api_key, ())) if version >= f.first_version), None)
    if form is None:
        return ErrorCode.NONE
    try:
        return _read(form, version, data, is_flexible=version in BROKER_APIS[api_key].flexible)
    except (IndexError, struct.error):
        is_complete = len(data) >= min(frame_bytes, _HEAD_BYTES)
        return ErrorCode.NONE if is_complete else None
    except CorruptError:
        return ErrorCode.NONE


def _read(form: _Form, version: int, data: memoryview, *, is_flexible: bool) -> int:
    position = _CORRELATION_ID_BYTES
    if is_flexible:
        tag_count, position = read_unsigned_varint(data, position)
        if tag_count:
            return ErrorCode.NONE
    position += form.before_bytes
    if form.is_per_partition:
        topic_count, position = _count(data, position, is_flexible=is_flexible)
        if topic_count <= 0:
            return ErrorCode.NONE
        if version >= form.topic_ids_from:
            position += _UUID_BYTES
        else:
            position = _after_name(data, position, is_flexible=is_flexible)
        partition_count, position = _count(data, position, is_flexible=is_flexible)
        if partition_count <= 0:
            return ErrorCode.NONE
        position += form.index_bytes
    return int(_INT16.unpack_from(data, position)[0])


def _count(data: memoryview, position: int, *, is_flexible: bool) -> tuple[int, int]:
    if is_flexible:
        above, position = read_unsigned_varint(data, position)
        return above - 1, position
    return int(_INT32.unpack_from(data, position)[0]), position + _INT32.size


def _after_name(data: memoryview, position: int, *, is_flexible: bool) -> int:
    if is_flexible:
        above, position = read_unsigned_varint(data, position)
        return position + max(above - 1, 0)
    return position + _INT16.size + max(int(_INT16.unpack_from(data, position)[0]), 0)
