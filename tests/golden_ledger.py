"""The ledger that Pulsar offloaded, in tests/golden."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

from rsm.segment.local_segment import BytesSource
from rsm.storage.chunk_storage import ChunkStorage

DIRECTORY = Path(__file__).parent / "golden" / "pulsar"
LEDGER_ID = 17
UUID_A1 = UUID("11111111-2222-4333-8444-5555555555a1")
BLOCK_BYTES = 65_536

DATA_FILE = DIRECTORY / f"{UUID_A1}-ledger-{LEDGER_ID}"
INDEX_FILE = DIRECTORY / f"{UUID_A1}-ledger-{LEDGER_ID}-index"
FOREIGN_INDEX_FILE = DIRECTORY / "11111111-2222-4333-8444-555555555502-index"


def manifest() -> list[tuple[int, int, str]]:
    """Each entry's id, length and SHA-256."""
    lines = (DIRECTORY / f"{DATA_FILE.name}.manifest.jsonl").read_text().splitlines()
    return [(each["entryId"], each["len"], each["sha256"]) for each in map(json.loads, lines)]


def put(storage: ChunkStorage) -> None:
    """Bring both objects into a store, with their user metadata."""
    for path in (DATA_FILE, INDEX_FILE):
        storage.create_with_content(
            path.name,
            BytesSource(content=path.read_bytes()),
            attributes=json.loads(path.with_name(f"{path.name}.meta").read_text()),
        )
