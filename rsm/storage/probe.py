"""Tries and times each operation that rlm needs of a store, with the probe's own objects.

The caller chooses a prefix that nothing else uses. The probe tries to delete the objects at the
end, also after failures. It skips an operation if the access or the object for it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial

from crc32c import crc32c

from rsm.segment.errors import (
    AlreadyExistsError,
    CorruptError,
    NotFoundError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage, Concat

_PIECE = bytes(range(256)) * 4096
_SMALL = _PIECE[:1000]
_LARGE_PIECES = 17  # MiB: more than an object store's binding sends in one request by default


class ProbeResult(Enum):
    """Represents a result. NOT_OFFERED: the store lacks an optional feature."""

    OK = "ok"
    FAILED = "failed"
    NOT_OFFERED = "not offered"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeStep:
    """Represents one operation and its result; `problem` is the reason for a failure."""

    verb: str
    result: ProbeResult
    duration_ms: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bytes:
    """Represents content of `count` equal pieces."""

    piece: bytes
    count: int = 1

    @property
    def length_bytes(self) -> int:
        return len(self.piece) * self.count

    def chunks(self) -> Iterator[memoryview]:
        return (memoryview(self.piece) for _ in range(self.count))


def probe(
    storage: ChunkStorage, name: str, monotonic_ms: Callable[[], float]
) -> tuple[ProbeStep, ...]:
    """Run the probe; return all results in order. `name` is the prefix of the objects."""
    return _Probe(storage, name, monotonic_ms).run()


class _Probe:
    def __init__(self, storage: ChunkStorage, name: str, monotonic_ms: Callable[[], float]) -> None:
        self._storage = storage
        self._small = f"{name}/small"
        self._large = f"{name}/large"
        self._prefix = f"{name}/"
        self._monotonic_ms = monotonic_ms
        self._steps: list[ProbeStep] = []

    def run(self) -> tuple[ProbeStep, ...]:
        reached = self._try("reach the store", self._storage.check_access)
        writes = reached and not self._storage.capabilities.is_read_only
        small = self._try("create a small object", self._create_small, when=writes)
        again = partial(self._create_again, self._create_small, self._small)
        self._try("create it again: refused", again, when=small)
        large = self._try("create a large object", self._create_large, when=writes)
        # A separate request completes a multipart upload; a store may ignore its condition.
        again = partial(self._create_again, self._create_large, self._large)
        self._try("create the large one again: refused", again, when=large)
        self._try("read its metadata", self._check_info, when=large)
        self._try("read a range", self._read_middle, when=large)
        self._try("read past its end", self._read_past_end, when=small)
        self._try("list", lambda: self._list(small=small, large=large), when=reached)
        self._try_optional_features(when=small)
        self._try("delete", self._delete, when=writes)
        self._try("check that it no longer exists", self._see_gone, when=writes)
        return tuple(self._steps)

    def _try(self, verb: str, act: Callable[[], object], *, when: bool = True) -> bool:
        if not when:
            self._steps.append(ProbeStep(verb=verb, result=ProbeResult.NOT_TRIED))
            return False
        started_ms = self._monotonic_ms()
        result, problem = ProbeResult.OK, ""
        try:
            act()
        except UnsupportedError:
            result = ProbeResult.NOT_OFFERED
        except TieredStorageError as error:
            result, problem = ProbeResult.FAILED, " ".join(str(error).split())
        duration_ms = self._monotonic_ms() - started_ms
        self._steps.append(
            ProbeStep(verb=verb, result=result, duration_ms=duration_ms, problem=problem)
        )
        return result is ProbeResult.OK

    def _create_small(self) -> None:
        self._storage.create_with_content(self._small, _Bytes(piece=_SMALL))

    def _create_again(self, create: Callable[[], None], name: str) -> None:
        try:
            create()
        except AlreadyExistsError:
            return
        raise CorruptError("the store replaced an object that already existed", name=name)

    def _create_large(self) -> None:
        content = _Bytes(piece=_PIECE, count=_LARGE_PIECES)
        self._storage.create_with_content(self._large, content)

    def _check_info(self) -> None:
        info = self._storage.info(self._large)
        _require(info.length_bytes == len(_PIECE) * _LARGE_PIECES, "another length")
        if info.crc32c is not None:
            checksum = 0
            for _ in range(_LARGE_PIECES):
                checksum = crc32c(_PIECE, checksum)
            _require(info.crc32c == checksum, "another checksum")

    def _read_middle(self) -> None:
        read = self._read(self._large, len(_PIECE) - 100, len(_PIECE) + 100)
        _require(read == _PIECE[-100:] + _PIECE[:100], "other bytes")

    def _read_past_end(self) -> None:
        _require(self._read(self._small, len(_SMALL) - 1, 1 << 40) == _SMALL[-1:], "other bytes")
        _require(self._read(self._small, 1 << 30, 1 << 31) == b"", "bytes after the end")

    def _list(self, *, small: bool, large: bool) -> None:
        wanted = [name for name, made in ((self._large, large), (self._small, small)) if made]
        listed = [info.name for info in self._storage.list(self._prefix)]
        _require([name for name in listed if name in wanted] == wanted, "objects are missing")

    def _try_optional_features(self, *, when: bool) -> None:
        """Try the operations that are optional for a store."""
        name = f"{self._prefix}grown"
        grown = self._try("create an empty object", lambda: self._storage.create(name), when=when)
        self._try("append", lambda: self._storage.append(name, 0, _SMALL), when=grown)
        self._try("truncate", lambda: self._storage.truncate(name, 0), when=grown)
        join = "join, by copy" if self._is_by_copy() else "join"
        self._try(join, lambda: self._storage.concat(name, [self._small]), when=grown)

    def _is_by_copy(self) -> bool:
        """Return whether a join moves all bytes through this host, which takes longer."""
        return self._storage.capabilities.concat is Concat.BY_COPY

    def _delete(self) -> None:
        names = [self._small, self._large, f"{self._prefix}grown"]
        for outcome in self._storage.delete_many(names):
            if outcome.error is not None:
                raise outcome.error

    def _see_gone(self) -> None:
        _require(not self._storage.exists(self._large), "the object is still there")
        try:
            self._read(self._large, 0, 1)
        except NotFoundError:
            return
        raise CorruptError("a deleted object can be read", name=self._large)

    def _read(self, name: str, start_position: int, end_position: int) -> bytes:
        positions = ByteRange(start_position=start_position, end_position=end_position)
        return self._storage.read_range(name, positions)


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not holds:
        raise CorruptError("the store returned a wrong result", found=otherwise)
