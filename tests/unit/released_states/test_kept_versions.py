"""Which states are kept; the one of this version has an example of every field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from google.protobuf.message import Message

from rlmm.cache.values import SCHEMA_VERSION
from rlmm.codec import FOLD_VERSION, decode, encode
from rlmm.positions import TopicRecord
from rlmm.proto import dead_letter_pb2, events_pb2
from rlmm.record_keys import RecordKind, parse_record_key
from rsm.layout.block_v1.block_index import decode_index, encode_index
from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.block_v2.stream_index import decode_stream_index, encode_stream_index
from rsm.layout.blocks.block_format import BlockFormat, decode_header, encode_header
from rsm.layout.chunked import NAME as CHUNKED
from rsm.layout.companion import MAGIC, decode_companion, encode_companion
from rsm.layout.keys import (
    LedgerPart,
    ObjectKey,
    ObjectKeys,
    SegmentKey,
    StreamedKey,
    numbered_chunk,
)
from rsm.layout.originals import OriginalsKeys, decode_originals, encode_originals
from rsm.layout.proto import companion_pb2
from rsm.layout.raw import COMPANION_SUFFIX, LOG_SUFFIX, RawLayout
from rsm.segment.proto import segment_pb2
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.released_states.__main__ import main
from tests.released_states.dead_letter_answers import reencoded
from tests.released_states.directories import (
    StateDirectory,
    committed_state,
    committed_versions,
    current_version,
)
from tests.released_states.store_answers import content
from tests.released_states.topic_records import read_records

MAX_BYTES = 300_000
VERSION_BYTES = 2
SCHEMAS = (segment_pb2, events_pb2, dead_letter_pb2, companion_pb2)
OUTDATED = "The state of this version is not kept. See docs/compatibility.md, Raising the version."
LAYOUTS = {RawLayout().name, BlockV1Layout().name, BlockV2Layout().name, CHUNKED}


def test_states_when_listed_then_this_version_has_one() -> None:
    """Scenario 102: `make released-state` writes it when the version is raised."""
    assert current_version() in committed_versions()


def test_state_when_it_is_kept_already_then_is_not_replaced_by_accident(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scenario 102: the state of a release is never written again."""
    kept = tmp_path / current_version() / "expected.json"
    kept.parent.mkdir()
    kept.write_text("as released")

    exit_code = main([], tmp_path)

    assert (exit_code, kept.read_text()) == (1, "as released")
    assert "it exists" in capsys.readouterr().err


def test_states_when_measured_then_each_is_small() -> None:
    for version in committed_versions():
        files = [each for each in committed_state(version).path.rglob("*") if each.is_file()]

        assert sum(each.stat().st_size for each in files) < MAX_BYTES, version


def test_state_when_this_version_wrote_it_then_has_each_kind_of_record_and_field(
    current_state: StateDirectory,
) -> None:
    """Scenario 102: each kind of key, and each field and enum value of the schema."""
    records = _written(read_records(current_state.metadata_topic))
    dead_letters = _written(read_records(current_state.dead_letter_topic))
    messages: list[Message] = [
        *(events_pb2.MetadataEvent.FromString(value) for _, value in records),
        *(dead_letter_pb2.DeadLetter.FromString(value) for _, value in dead_letters),
        *(companion_pb2.Companion.FromString(each) for each in _companions(current_state)),
    ]

    kinds = {parse_record_key(key).kind for key, _ in records}
    present = {name for message in messages for name in _present(message)}
    assert kinds == set(RecordKind), OUTDATED
    assert set(_known()) - present == set(), OUTDATED


def test_cache_when_this_version_wrote_it_then_has_its_schema_and_fold_version(
    current_state: StateDirectory,
) -> None:
    """Scenario 102: a kept cache of an older schema is rebuilt, and no test reads its rows."""
    versions = current_state.expected()["cache"]

    found = (versions["schema_version"], versions["fold_version"])
    assert found == (SCHEMA_VERSION, FOLD_VERSION), OUTDATED


def test_state_when_this_version_wrote_it_then_has_each_layout(
    current_state: StateDirectory,
) -> None:
    partitions = current_state.expected()["metadata"]["partitions"].values()

    found = {each["layout"] for partition in partitions for each in partition["segments"]}
    assert found == LAYOUTS


def test_records_when_this_version_wrote_them_then_are_encoded_to_the_same_bytes(
    current_state: StateDirectory,
) -> None:
    """Scenario 102: a change of the encoding shows before a release has it."""
    records = _written(read_records(current_state.metadata_topic))
    dead_letters = _written(read_records(current_state.dead_letter_topic))

    encoded = [encode(decode(key, value)) for key, value in records]

    assert [(each.key, each.value) for each in encoded] == records
    assert [reencoded(key, value) for key, value in dead_letters] == dead_letters


def test_objects_when_this_version_wrote_them_then_are_named_and_encoded_to_the_same_bytes(
    current_state: StateDirectory,
) -> None:
    """Scenario 102: names, companions, indexes and originals; logs are compared in test_store."""
    storage, keys = FilesystemChunkStorage(current_state.store), ObjectKeys()
    kinds: set[object] = set()
    for info in storage.list(""):
        data, key = content(storage, info), keys.parse(info.name)
        if key is None:
            assert OriginalsKeys().parse(info.name) is not None, info.name
            assert encode_originals(decode_originals(data)) == data
            continue
        kinds.add(kind := _kind(key))
        is_streamed = isinstance(key, StreamedKey)
        if kind in {COMPANION_SUFFIX, LedgerPart.COMPANION}:
            assert encode_companion(decode_companion(data)) == data
        elif kind is LedgerPart.INDEX and is_streamed:
            assert encode_stream_index(decode_stream_index(data, name=info.name)) == data
        elif kind is LedgerPart.INDEX:
            assert encode_index(decode_index(data, name=info.name)) == data
        elif kind is LedgerPart.DATA:
            found = BlockFormat.V2 if is_streamed else BlockFormat.V1
            header = decode_header(data, name=info.name, position=0, block_format=found)
            assert data.startswith(encode_header(header))
    assert kinds == {LOG_SUFFIX, f"{LOG_SUFFIX}.00000", COMPANION_SUFFIX, *LedgerPart}


def _written(records: Iterable[TopicRecord]) -> list[tuple[bytes, bytes]]:
    return [(each.key, each.value) for each in records if each.value is not None]


def _companions(state: StateDirectory) -> Iterator[bytes]:
    """Yield the protobuf of each companion, without the header before it."""
    storage = FilesystemChunkStorage(state.store)
    for info in storage.list(""):
        data = content(storage, info)
        if data.startswith(MAGIC):
            yield data[len(MAGIC) + VERSION_BYTES :]


def _kind(key: SegmentKey) -> str | LedgerPart:
    """Return the kind of an object; the chunks of a log are of one kind."""
    first = numbered_chunk(key, 0)
    return first.suffix if isinstance(first, ObjectKey) else first.part


def _present(message: Message) -> Iterator[str]:
    """Yield the fields that a message sets and the enum values in them, also in nested messages."""
    for field, value in message.ListFields():
        yield field.full_name
        values = value if field.is_repeated else [value]
        for each in values:
            if isinstance(each, Message):
                yield from _present(each)
            elif field.enum_type is not None:
                yield f"{field.enum_type.full_name}.{field.enum_type.values_by_number[each].name}"


def _known() -> Iterator[str]:
    """Yield all fields and enum values of the schemas, except the values that mean unknown."""
    for module in SCHEMAS:
        for message in module.DESCRIPTOR.message_types_by_name.values():
            yield from (field.full_name for field in message.fields)
        for enum in module.DESCRIPTOR.enum_types_by_name.values():
            values = (value for value in enum.values if value.number)
            yield from (f"{enum.full_name}.{value.name}" for value in values)
