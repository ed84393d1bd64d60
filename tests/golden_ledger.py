"""Reads the ledgers that Pulsar offloaded, in tests/golden: a whole one, and a streamed object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from rsm.layout.block_v2.offload_context import OffloadContext, OffloadSegment
from rsm.segment.local_segment import BytesSource
from rsm.storage.chunk_storage import ChunkStorage

DIRECTORY = Path(__file__).parent / "golden" / "pulsar"
LEDGER_ID = 17
UUID_A1 = UUID("11111111-2222-4333-8444-5555555555a1")
BLOCK_BYTES = 65_536

DATA_FILE = DIRECTORY / f"{UUID_A1}-ledger-{LEDGER_ID}"
INDEX_FILE = DIRECTORY / f"{UUID_A1}-ledger-{LEDGER_ID}-index"
CONTEXT = OffloadContext(uuid=UUID_A1)

STREAM_UUID = UUID("11111111-2222-4333-8444-555555555502")
STREAM_BLOCK_BYTES = 8_192
STREAM_FILE = DIRECTORY / str(STREAM_UUID)
STREAM_INDEX_FILE = DIRECTORY / f"{STREAM_UUID}-index"
STREAM_CONTEXT = OffloadContext(segments=(OffloadSegment(uuid=STREAM_UUID),))


class StreamedEntry(NamedTuple):
    """An entry of the streamed object's manifest."""

    ledger_id: int
    entry_id: int
    length_bytes: int
    sha256: str


def manifest() -> list[tuple[int, int, str]]:
    """Return each entry's id, length and SHA-256."""
    return [(each["entryId"], each["len"], each["sha256"]) for each in _lines(DATA_FILE)]


def stream_manifest() -> list[StreamedEntry]:
    """Return the entries of the streamed object, in its order."""
    return [
        StreamedEntry(each["ledger"], each["entryId"], each["len"], each["sha256"])
        for each in _lines(STREAM_FILE)
    ]


def put(storage: ChunkStorage) -> None:
    """Put the whole ledger's objects into a store, with their user metadata."""
    _put(storage, DATA_FILE, INDEX_FILE)


def put_stream(storage: ChunkStorage) -> None:
    """Put the streamed object and its index into a store, with their user metadata."""
    _put(storage, STREAM_FILE, STREAM_INDEX_FILE)


def user_metadata(path: Path) -> dict[str, str]:
    """Return the user metadata that Pulsar wrote for an object."""
    found: dict[str, str] = json.loads(path.with_name(f"{path.name}.meta").read_text())
    return found


def _put(storage: ChunkStorage, *paths: Path) -> None:
    for path in paths:
        storage.create_with_content(
            path.name, BytesSource(content=path.read_bytes()), attributes=user_metadata(path)
        )


def _lines(path: Path) -> list[dict[str, Any]]:
    lines = path.with_name(f"{path.name}.manifest.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]
