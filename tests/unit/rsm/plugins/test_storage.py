"""A wrong result of a plug-in's store never means that a chunk is absent, deleted or stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rsm.plugins.storage import PluginChunkStorage
from rsm.segment.errors import CorruptError, RetriableError
from rsm.segment.local_segment import BytesSource, ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import Capabilities, ChunkInfo, ChunkStorage, DeleteOutcome
from rsm.storage.memory import MemoryChunkStorage
from tests.unit.rsm.plugins.failures import Failures

WHOLE = ByteRange(start_position=0, end_position=10)


class Lying(MemoryChunkStorage):
    """Returns the results that a test sets, also invalid ones."""

    def __init__(self, answer: Any = None) -> None:
        super().__init__(wall_ms=lambda: 0)
        self.answer = answer

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, has_confirmed_creation=True)

    def exists(self, name: str) -> bool:
        return self.answer  # type: ignore[no-any-return]  # what the test says

    def info(self, name: str) -> ChunkInfo:
        return self.answer  # type: ignore[no-any-return]  # what the test says

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        return self.answer  # type: ignore[no-any-return]  # what the test says

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        return self.answer  # type: ignore[no-any-return]  # what the test says

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        return self.answer  # type: ignore[no-any-return]  # what the test says


WRONG_FIELDS: Sequence[tuple[str, Any]] = (
    ("length_bytes", "1"),
    ("length_bytes", -1),
    ("length_bytes", True),
    ("last_modified_ms", None),
    ("crc32c", "364b3fb7"),
    ("attributes", None),
)
OTHER = ChunkInfo(name="other", length_bytes=1, last_modified_ms=0)


@pytest.mark.parametrize(
    ("method", "ask", "answer"),
    [
        ("exists", lambda store: store.exists("a"), None),
        ("info", lambda store: store.info("a"), None),
        ("info", lambda store: store.info("a"), OTHER),
        ("read_range", lambda store: store.read_range("a", WHOLE), None),
        ("read_range", lambda store: store.read_range("a", WHOLE), b"eleven bytes"),
        (
            "read_range",
            lambda store: store.read_range_into("a", WHOLE, memoryview(bytearray(10))),
            b"eleven bytes",
        ),
        ("delete_many", lambda store: store.delete_many(["a"]), None),
        ("delete_many", lambda store: store.delete_many(["a"]), ()),
        ("delete_many", lambda store: store.delete_many(["a"]), (DeleteOutcome(name="b"),)),
        ("delete_many", lambda store: store.delete_many(["a"]), ({"name": "a"},)),
        (
            "delete_many",
            lambda store: store.delete_many(["a"]),
            (DeleteOutcome(name="a", error="no"),),  # type: ignore[arg-type]  # a wrong type
        ),
        ("list", lambda store: list(store.list("")), None),
        ("list", lambda store: list(store.list("")), iter(["a"])),
        ("list", lambda store: list(store.list("a/")), iter([OTHER])),
        ("list", lambda store: list(store.list("", after="other")), iter([OTHER])),
        ("list", lambda store: list(store.list("")), iter([OTHER, OTHER])),
        ("list", lambda store: list(store.list("")), iter([replace(OTHER, crc32c=1 << 32)])),
        *(
            ("info", lambda store: store.info("other"), replace(OTHER, **{field: wrong}))
            for field, wrong in WRONG_FIELDS
        ),
    ],
)
def test_request_when_its_result_is_wrong_then_it_is_retriable_and_counted(
    method: str, ask: Callable[[ChunkStorage], object], answer: object
) -> None:
    failures = Failures()
    store = PluginChunkStorage(Lying(answer), failures.calls())

    with pytest.raises(RetriableError):
        ask(store)

    assert failures.counted == [("acme:Tape", method)]


def test_capabilities_when_creations_are_said_to_be_confirmed_then_they_are_checked() -> None:
    store = PluginChunkStorage(Lying(), Failures().calls())

    assert not store.capabilities.has_confirmed_creation


class Creating(MemoryChunkStorage):
    """Creates chunks as a test says."""

    def __init__(self, create: Callable[[ContentSource], int]) -> None:
        super().__init__(wall_ms=lambda: 0)
        self._create = create

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        return self._create(source)


def read_once(source: ContentSource) -> int:
    assert b"".join(map(bytes, source.chunks())) == b"abc"
    return 7


def read_half(source: ContentSource) -> int:
    next(source.chunks())
    return 0x364B3FB7


@pytest.mark.parametrize("create", [lambda _source: 0x364B3FB7, read_half, read_once])
def test_create_when_the_plug_in_did_not_take_the_bytes_that_it_reports_then_corrupt(
    create: Callable[[ContentSource], int],
) -> None:
    store = PluginChunkStorage(Creating(create), Failures().calls())

    with pytest.raises(CorruptError, match="did not store the bytes"):
        store.create_with_content("a", BytesSource(content=b"abc"))
