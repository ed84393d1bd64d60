"""Scans a Metadata response in pieces: changes its brokers, and relays the rest unread.

    correlation id [, tags]             the frame's head
    [throttle time,] count of brokers   the throttle time in versions 3 and up
      node id, host, port [, rack]      the rack in versions 1 and up
    cluster id, topics with their partitions, …

The brokers come first and are few; the partitions after them may be many. A changed address may
have another length, and the frame's size precedes everything. So the scanner buffers the frame
until all brokers have arrived, and buffers nothing afterwards.

Source: MetadataResponse.json of kafka-clients.
"""

from __future__ import annotations

from collections.abc import Callable

from rlm.wire.api.metadata import METADATA, MetadataResponseBroker
from rlm.wire.codec import decode_prefix, encode
from rlm.wire.frames import ResponseHeader
from rlm.wire.scanning.units import IncompleteUnit, count_unit, fixed_unit
from rlm.wire.schema import Buffer
from rsm.segment.errors import CorruptError, UnsupportedError

MAX_BUFFERED_BYTES = 4 << 20  # This is enough for ten thousand brokers with long names.

_THROTTLE_TIME_VERSION = 3
_THROTTLE_TIME_BYTES = 4


class MetadataScanner:
    """Relays one Metadata response in pieces of any size. Not thread-safe.

    The attribute `frame_bytes` is the size of the changed frame; None until it is known.
    """

    def __init__(
        self,
        version: int,
        *,
        frame_bytes: int,
        readdress: Callable[[MetadataResponseBroker], MetadataResponseBroker],
    ) -> None:
        """Raise UnsupportedError if `rlm` does not support the version.

        `frame_bytes` is the value of the received size field. `readdress` returns the changed
        broker.
        """
        if version not in METADATA.versions:
            raise UnsupportedError(
                "cannot scan a Metadata response: its version is unknown", version=version
            )
        self.frame_bytes: int | None = None
        self._version = version
        self._flexible = version in METADATA.flexible
        self._readdress = readdress
        self._whole_bytes = self._left_bytes = frame_bytes
        self._buffered = b""
        self._brokers_position: int | None = None
        self._brokers_left = 0
        self._end_position = 0  # The bytes read so far end here.
        self._readdressed = bytearray()

    @property
    def buffered_bytes(self) -> int:
        """Return how many bytes of the frame are buffered."""
        return len(self._buffered)

    @property
    def passing_bytes(self) -> int:
        """Return how many of the next bytes need not be fed; 0 until all brokers have arrived."""
        return 0 if self.frame_bytes is None else self._left_bytes

    def skip(self, count: int) -> None:
        """Skip `count` bytes, at most `passing_bytes`."""
        self._left_bytes -= count

    def feed(self, chunk: memoryview) -> list[Buffer]:
        """Read the next bytes of the frame after its size; return the bytes to relay.

        The result may contain `chunk` itself. Raises ValueError if `chunk` is longer than the rest
        of the frame, and CorruptError if the brokers cannot be read.
        """
        if len(chunk) > self._left_bytes:
            raise ValueError("the bytes exceed the rest of the frame")
        self._left_bytes -= len(chunk)
        if self.frame_bytes is not None:
            return [chunk]
        self._buffered += chunk
        if not self._read():
            return []
        buffered, start, end = self._buffered, self._brokers_position, self._end_position
        assert start is not None
        self._buffered = b""
        self.frame_bytes = self._whole_bytes - (end - start) + len(self._readdressed)
        return [buffered[:start] + self._readdressed, memoryview(buffered)[end:]]

    def _read(self) -> bool:
        """Read the buffered bytes; return whether all brokers have arrived."""
        try:
            if self._brokers_position is None:
                self._read_head()
            while self._brokers_left:
                self._read_broker()
        except (IncompleteUnit, CorruptError) as error:
            # An incomplete structure looks corrupt until more bytes have arrived.
            if not self._left_bytes or len(self._buffered) > MAX_BUFFERED_BYTES:
                raise CorruptError(
                    "cannot read the brokers of a Metadata response", reason=error
                ) from error
            return False
        return True

    def _read_head(self) -> None:
        data = self._buffered
        _, position = decode_prefix(
            ResponseHeader,
            METADATA.response_header_version(self._version),
            data,
            flexible=self._flexible,
        )
        if self._version >= _THROTTLE_TIME_VERSION:
            position = fixed_unit(memoryview(data), position, _THROTTLE_TIME_BYTES)
        count, position = count_unit(memoryview(data), position, flexible=self._flexible)
        self._brokers_left = count
        self._brokers_position = self._end_position = position

    def _read_broker(self) -> None:
        version, flexible = self._version, self._flexible
        broker, end = decode_prefix(
            MetadataResponseBroker,
            version,
            self._buffered,
            flexible=flexible,
            position=self._end_position,
        )
        self._readdressed += encode(self._readdress(broker), version, flexible=flexible)
        self._end_position = end
        self._brokers_left -= 1
