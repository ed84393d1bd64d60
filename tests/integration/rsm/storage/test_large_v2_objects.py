"""A streamed object of more than 2 GiB (PIP-76), with positions that a Java int cannot have."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from rsm.layout.block_v2.offload_context import OffloadContext, OffloadSegment
from rsm.layout.block_v2.stream_index import decode_stream_index
from rsm.pulsar.offload_handle import StreamingLimits
from rsm.pulsar.offloader import open_offloader
from rsm.segment.ranges import ByteRange
from rsm.storage.filesystem.storage import FilesystemChunkStorage

_UUID_1 = UUID(int=1)
_ENTRY_BYTES = 32 << 20
_FIRST_LEDGER, _SECOND_LEDGER = 7, 9
_ENTRIES = 33  # of each ledger: the second ledger begins above 1 GiB, and ends above 2 GiB
_WHOLE = ByteRange(start_position=0, end_position=1 << 40)
_JAVAS_INT = 1 << 31


def test_stream_when_its_object_is_larger_than_2_gib_then_its_last_entries_are_read(
    tmp_path: Path,
) -> None:
    storage = FilesystemChunkStorage(tmp_path)
    offloader = open_offloader(
        storage,
        streaming=StreamingLimits(
            block_bytes=64 << 20, buffer_bytes=256 << 20, segment_bytes=1 << 40
        ),
    )
    data = bytearray(_ENTRY_BYTES)

    handle = offloader.streaming_offload(_UUID_1)
    for ledger_id in (_FIRST_LEDGER, _SECOND_LEDGER):
        for entry_id in range(_ENTRIES):
            data[:2] = ledger_id, entry_id
            while not handle.offer_entry(ledger_id, entry_id, bytes(data)):
                assert handle.wait_for_room(_ENTRY_BYTES, ledger_id, timeout_s=60)
    handle.seal()
    result = handle.result()

    assert (result.last.ledger_id, result.last.entry_id) == (_SECOND_LEDGER, _ENTRIES - 1)
    assert storage.info(str(_UUID_1)).length_bytes > 2 * _ENTRIES * _ENTRY_BYTES > _JAVAS_INT
    name = f"{_UUID_1}-index"
    index = decode_stream_index(storage.read_range(name, _WHOLE), name=name)
    assert index.ledgers[-1].blocks[-1].position > _JAVAS_INT
    context = OffloadContext(segments=(OffloadSegment(uuid=_UUID_1),))
    ledger = offloader.read_offloaded(_SECOND_LEDGER, context)
    (last,) = ledger.entries(_ENTRIES - 1, _ENTRIES)
    assert last == (_ENTRIES - 1, bytes(data))
