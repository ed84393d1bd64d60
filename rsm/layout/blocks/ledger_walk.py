"""Walks through a ledger's entries in a data object, block by block, and checks them. Pure.

A walk reads ranges of the read buffer's length, and a longer range for a larger entry. It checks
each length against the block's end before it reads or allocates that many bytes. In v2 only the
padding shows where the entries of a ledger's last block end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rsm.layout.blocks.block_format import (
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    PADDING,
    BlockFormat,
    BlockHeader,
    begins_padding,
    check_padding,
    decode_header,
)
from rsm.layout.blocks.block_sequence import BlockSequence
from rsm.segment.errors import CorruptError
from rsm.segment.ranges import ByteRange

READ_BUFFER_BYTES = 1 << 20


class EntryPositions(Protocol):
    """Remembers entry ids and the positions of their headers, as earlier reads found them."""

    def floor(self, key: str, at: int) -> tuple[int, int] | None: ...

    def note(self, key: str, at: int, value: int) -> None: ...


class DataObject:
    """Reads a data object through `read`, which returns fewer bytes only at the object's end."""

    def __init__(
        self,
        *,
        name: str,
        read: Callable[[ByteRange], bytes],
        read_buffer_bytes: int = READ_BUFFER_BYTES,
    ) -> None:
        self.name = name
        self.read_buffer_bytes = read_buffer_bytes
        self._read = read

    def read(self, positions: ByteRange) -> bytes:
        """Return all bytes at `positions`. Raises CorruptError if the object ends earlier."""
        content = self._read(positions)
        if len(content) != len(positions):
            raise CorruptError(
                "the data object is truncated",
                object=self.name,
                position=positions.start_position + len(content),
                expected=f">= {positions.end_position} bytes",
                found="its end",
            )
        return content


class LedgerWalk:
    """Represents a position that moves forward through a ledger's entries. Not thread-safe.

    Methods that read raise the errors of the read, and CorruptError for invalid content.
    """

    def __init__(self, blocks: BlockSequence, data: DataObject, positions: EntryPositions) -> None:
        self._blocks = blocks
        self._data = data
        self._positions = positions
        self._note_key = note_key(data.name, blocks.header_ledger_id)
        self._buffer = memoryview(b"")
        self._buffer_position = 0
        self._position = 0
        self._block_end_position = 0
        self._block_end_entry_id: int | None = 0
        self.next_entry_id = 0

    def enter(self, number: int) -> BlockHeader:
        """Check a block's header, and move to the block's first entry."""
        block = self._blocks.blocks[number]
        expected = self._blocks.block_header(number)
        content = self._view(block.position, self._blocks.header_bytes)
        header = decode_header(
            content, name=self._data.name, position=block.position, block_format=expected.format
        )
        if header != expected:
            raise self._corrupt(
                "the block header contradicts the index",
                block.position,
                _fields(expected),
                _fields(header),
            )
        position = block.position + self._blocks.header_bytes
        self.enter_at(number, block.first_entry_id, position)
        return header

    def enter_at(self, number: int, entry_id: int, position: int) -> None:
        """Move to an entry of a block whose position is known."""
        self._block_end_position = self._blocks.block_end_position(number)
        self._block_end_entry_id = self._blocks.block_end_entry_id(number)
        self.next_entry_id = entry_id
        self._position = position

    @property
    def position(self) -> int:
        """Return the position of the next entry; the end of the last entry if no entry follows."""
        return self._position

    def is_at_padding(self) -> bool:
        """Return whether the next byte begins padding; no entry begins with this byte."""
        return self._view(self._position, 1) == PADDING[:1]

    def is_at_end(self) -> bool:
        """Return whether the block has no further entry."""
        if self._block_end_entry_id is not None:
            return self.next_entry_id == self._block_end_entry_id
        left_bytes = self._block_end_position - self._position
        return begins_padding(self._view(self._position, min(left_bytes, ENTRY_HEADER_BYTES)))

    def skip(self) -> int | None:
        """Skip the next entry and return its length; None if the block has no further entry."""
        if self.is_at_end():
            return None
        length_bytes = self._length()
        self._pass(length_bytes)
        return length_bytes

    def take(self) -> bytes | None:
        """Move past the next entry and return its data; None if the block has no further entry."""
        if self.is_at_end():
            return None
        length_bytes = self._length()
        data = bytes(self._view(self._position + ENTRY_HEADER_BYTES, length_bytes))
        self._pass(length_bytes)
        return data

    def leave(self) -> int:
        """Check the padding up to the block's end; return its length."""
        padding_bytes = self._block_end_position - self._position
        passed_bytes = 0
        while passed_bytes < padding_bytes:
            position = self._position + passed_bytes
            size_bytes = min(padding_bytes - passed_bytes, self._data.read_buffer_bytes)
            content = self._view(position, size_bytes)
            check_padding(content, name=self._data.name, position=position, phase=passed_bytes)
            passed_bytes += size_bytes
        return padding_bytes

    def note(self) -> None:
        """Note the position of the next entry, unless it is known to be in a later block."""
        end_entry_id = self._block_end_entry_id
        if end_entry_id is None or self.next_entry_id < end_entry_id:
            self._positions.note(self._note_key, self.next_entry_id, self._position)

    def noted_floor(self, entry_id: int) -> tuple[int, int] | None:
        """Return the last noted entry up to this id, and its position; None if none was noted."""
        return self._positions.floor(self._note_key, entry_id)

    def _length(self) -> int:
        """Check the next entry's header and return the entry's length."""
        left_bytes = self._block_end_position - self._position - ENTRY_HEADER_BYTES
        if left_bytes < 0:
            expected, found = f"entry {self.next_entry_id}", "the block's end"
            raise self._corrupt("the entries end early", self._position, expected, found)
        header = self._view(self._position, ENTRY_HEADER_BYTES)
        length_bytes, entry_id = ENTRY_HEADER.unpack(header)
        if not 0 <= length_bytes <= left_bytes:
            expected = f"0..{left_bytes}, of entry {self.next_entry_id}"
            message = "the entry length is invalid"
            raise self._corrupt(message, self._position, expected, length_bytes)
        if entry_id != self.next_entry_id:
            at = self._position + 4
            raise self._corrupt("the entry id is wrong", at, self.next_entry_id, entry_id)
        limit_entry_id = self._blocks.limit_entry_id
        if limit_entry_id is not None and entry_id >= limit_entry_id:
            expected = f"< {limit_entry_id}"
            message = "an entry is beyond the ledger's end"
            raise self._corrupt(message, self._position + 4, expected, entry_id)
        return int(length_bytes)

    def _pass(self, length_bytes: int) -> None:
        self._position += ENTRY_HEADER_BYTES + length_bytes
        self.next_entry_id += 1

    def _view(self, position: int, length_bytes: int) -> memoryview:
        """Return bytes of the data object; read those that are not in the buffer."""
        start = position - self._buffer_position
        if not 0 <= start <= len(self._buffer):
            self._buffer, self._buffer_position, start = memoryview(b""), position, 0
        lacking_bytes = start + length_bytes - len(self._buffer)
        if lacking_bytes > 0:
            kept = self._buffer[start:]
            from_position = position + len(kept)
            wanted_bytes = max(lacking_bytes, self._data.read_buffer_bytes)
            end_position = min(from_position + wanted_bytes, self._blocks.data_bytes)
            read = self._data.read(
                ByteRange(start_position=from_position, end_position=end_position)
            )
            self._buffer = memoryview(b"".join((kept, read)) if kept else read)
            self._buffer_position, start = position, 0
            self.note()
        return self._buffer[start : start + length_bytes]

    def _corrupt(self, message: str, at: int, expected: object, found: object) -> CorruptError:
        return CorruptError(
            message, object=self._data.name, position=at, expected=expected, found=found
        )


def note_key(name: str, ledger_id: int | None) -> str:
    """Return the key of the noted positions of a ledger in the data object `name`."""
    return name if ledger_id is None else f"{name}\n{ledger_id}"


def noted_object(key: str) -> str:
    """Return the name of the data object in a key of noted positions."""
    return key.partition("\n")[0]


def _fields(header: BlockHeader) -> tuple[int, ...]:
    fields = (header.header_bytes, header.block_bytes, header.first_entry_id)
    return fields if header.format is BlockFormat.V1 else (*fields, header.ledger_id or 0)
