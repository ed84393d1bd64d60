"""Reads entries for `rlm blocks write` as lines of JSON, and writes them as a stream.

Memory: one line. It can contain the largest entry of the formats in base64, and its ids.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO
from uuid import UUID

from rsm.layout.block_v2.ledger_info import LedgerInfo
from rsm.layout.blocks.block_format import MAX_ENTRY_BYTES
from rsm.pulsar.offload_handle import OffloadHandle
from rsm.pulsar.offloader import LedgerOffloader
from rsm.segment.errors import InvalidConfigError, TieredStorageError

# Base64 has 4 characters for 3 bytes; the rest is for the keys and the ids.
LINE_MAX_CHARACTERS = (MAX_ENTRY_BYTES + 2) // 3 * 4 + 1024

_LEDGER_ID, _ENTRY_ID, _DATA = "ledger_id", "entry_id", "data"
_SHOWN_CHARACTERS = 80


def ledger_entries(
    lines: TextIO, *, line_max_characters: int = LINE_MAX_CHARACTERS
) -> Iterator[tuple[int, bytes]]:
    """Yield id and data of each entry of a ledger. Raises InvalidConfigError with the line."""
    expected = '{"entry_id": number, "data": "base64"}'
    for entry in _entries(lines, (_ENTRY_ID,), expected, line_max_characters):
        yield entry[_ENTRY_ID], entry[_DATA]


def streamed_entries(
    lines: TextIO, *, line_max_characters: int = LINE_MAX_CHARACTERS
) -> Iterator[tuple[int, int, bytes]]:
    """Yield ledger id, entry id and data of each entry. Raises InvalidConfigError with the line."""
    expected = '{"ledger_id": number, "entry_id": number, "data": "base64"}'
    for entry in _entries(lines, (_LEDGER_ID, _ENTRY_ID), expected, line_max_characters):
        yield entry[_LEDGER_ID], entry[_ENTRY_ID], entry[_DATA]


def write_stream(
    offloader: LedgerOffloader,
    uuid: UUID,
    entries: Iterable[tuple[int, int, bytes]],
    infos: Mapping[int, LedgerInfo],
) -> None:
    """Write entries as one object; on an error, try to delete the object, then raise the error."""
    handle = offloader.streaming_offload(uuid)
    try:
        for ledger_id, entry_id, data in entries:
            while not handle.offer_entry(ledger_id, entry_id, data):
                _require_open(handle, ledger_id, entry_id)
                handle.wait_for_room(len(data), ledger_id)
        handle.seal(infos)
    except BaseException as error:
        was_sealed = handle.is_sealed
        handle.abort(error)
        if was_sealed:
            # The object is complete, but lacks the other entries. `result` raises if another
            # offload has objects of this id; those stay.
            with suppress(TieredStorageError):
                handle.result()
                offloader.delete_offloaded(uuid)
        raise
    handle.result()


def _require_open(handle: OffloadHandle, ledger_id: int, entry_id: int) -> None:
    """Raise InvalidConfigError if the handle accepts no more entries because its index is full."""
    if handle.is_sealed:
        raise InvalidConfigError(
            "cannot write the entries as one object: its index would be too long",
            ledger_id=ledger_id,
            entry_id=entry_id,
            advice="Choose larger blocks, or write fewer entries",
        )


def _lines(lines: TextIO, most: int) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; omit empty lines."""
    number = 0
    while True:
        number += 1
        try:
            line = lines.readline(most + 1)
        except UnicodeError as error:
            raise InvalidConfigError(
                "cannot read the input: it is not valid text",
                line=number,
                expected="UTF-8",
                reason=str(error),
                advice="Give lines of JSON",
            ) from error
        if not line:
            return
        if len(line) > most:
            raise InvalidConfigError(
                "cannot read the line: it is too long for an entry",
                line=number,
                expected=f"at most {most} characters",
                found=repr(line[:_SHOWN_CHARACTERS]),
                advice="Give each entry as one line of JSON",
            )
        if line.strip():
            yield number, line


def _entries(
    lines: TextIO, id_fields: Sequence[str], expected: str, most: int
) -> Iterator[dict[str, Any]]:
    """Yield the fields of each line's entry; its data is decoded."""
    for number, line in _lines(lines, most):
        try:
            fields = _fields(json.loads(line, object_pairs_hook=_Object), {*id_fields, _DATA})
            entry: dict[str, Any] = {field: _id(fields[field]) for field in id_fields}
            entry[_DATA] = base64.b64decode(fields[_DATA], validate=True)
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidConfigError(
                "cannot parse an entry",
                line=number,
                expected=expected,
                found=repr(line[: 4 * _SHOWN_CHARACTERS].strip()[:_SHOWN_CHARACTERS]),
                advice="Correct the line: `rlm blocks write -h` describes it",
            ) from error
        yield entry


class _Object(tuple[tuple[str, Any], ...]):
    """Represents the keys and values of a JSON object, which may repeat a key."""

    __slots__ = ()


def _fields(found: object, known: set[str]) -> dict[str, Any]:
    """Return the fields of an object that has exactly the known keys, each once."""
    if not isinstance(found, _Object):
        raise TypeError("not an object")
    if sorted(key for key, _ in found) != sorted(known):
        raise ValueError("not the keys of an entry")
    return dict(found)


def _id(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool):  # JSON's `true` is not a number
        raise TypeError("not a whole number")
    return found
