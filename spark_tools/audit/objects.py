"""Compares listed with expected objects; finds unknown, missing and different ones. Pure.

A listing is not a snapshot, and the metadata read before the listing lacks newer events. So a
finding of `compare` is only suspected until `confirmed` checks it with newer metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rsm.layout.keys import ObjectKeys, StreamedKey
from rsm.layout.originals import OriginalsKeys
from rsm.storage.chunk_storage import ChunkInfo
from spark_tools.audit.findings import Finding, FindingKind
from spark_tools.audit.key_ranges import ExpectedObject
from spark_tools.quarantine import original_name, parse_either

OF_UNKNOWN_OBJECTS = frozenset(
    each.value for each in (FindingKind.ORPHAN, FindingKind.QUARANTINED, FindingKind.FOREIGN)
)
"""The kinds of findings about objects that no segment names."""

_UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """Decides whether an unknown object is old enough to be reported.

    The metadata topic may not name newer objects yet.
    """

    cut_off_ms: int

    def is_old(self, found: ChunkInfo) -> bool:
        return found.last_modified_ms < self.cut_off_ms


def compare(
    listed: Iterable[ChunkInfo], expected: Sequence[ExpectedObject], keys: ObjectKeys, age: Age
) -> Iterator[Finding]:
    """Yield the differences between the listed and the expected objects."""
    awaited = {each.key: each for each in expected}
    for found in listed:
        known = awaited.pop(found.name, None)
        finding = _unknown(found, keys, age) if known is None else difference(found, known)
        if finding is not None:
            yield finding
    for absent in awaited.values():
        if absent.must_exist:
            yield missing(absent)


def confirmed(
    suspicion: Finding, found: ChunkInfo | None, known: ExpectedObject | None, age: Age
) -> Finding | None:
    """Return the finding if the second look and newer metadata confirm it; otherwise None."""
    if suspicion.kind in OF_UNKNOWN_OBJECTS:
        still_there = found is not None and known is None and age.is_old(found)
        return suspicion if still_there else None
    if known is None or not known.must_exist:
        return None
    return missing(known) if found is None else difference(found, known)


def missing(absent: ExpectedObject) -> Finding:
    """Return the finding for a finished segment's object that does not exist."""
    return _about(FindingKind.MISSING, absent, "a finished segment's object is not in the store")


def difference(found: ChunkInfo, known: ExpectedObject) -> Finding | None:
    """Return how an object differs from its record; None if equal or if it may be absent."""
    if not known.must_exist:
        return None
    if known.length_bytes not in (-1, found.length_bytes):
        detail = f"recorded {known.length_bytes} bytes, found {found.length_bytes}"
        return _about(FindingKind.SIZE, known, detail)
    if found.crc32c is not None and known.crc32c not in (-1, found.crc32c):
        detail = f"recorded CRC32C {known.crc32c:08x}, found {found.crc32c:08x}"
        return _about(FindingKind.CHECKSUM, known, detail)
    return None


def _unknown(found: ChunkInfo, keys: ObjectKeys, age: Age) -> Finding | None:
    if not age.is_old(found):
        return None
    key = parse_either(keys, found.name)
    if key is None and OriginalsKeys(prefix=keys.prefix).parse(found.name) is not None:
        return None  # The managers keep a topic's originals.
    if key is None:
        return Finding(
            kind=FindingKind.FOREIGN.value,
            object_key=found.name,
            length_bytes=found.length_bytes,
            detail="rlm does not write objects with this name",
        )
    tip = key.segment_id.topic_id_partition
    in_quarantine = original_name(keys, found.name) is not None
    kind = FindingKind.QUARANTINED if in_quarantine else FindingKind.ORPHAN
    return Finding(
        kind=kind.value,
        topic=tip.topic,
        partition=tip.partition,
        segment_id=str(key.segment_id),
        object_key=found.name,
        start_offset=_UNKNOWN if isinstance(key, StreamedKey) else key.base_offset,
        length_bytes=found.length_bytes,
        detail="no segment in the metadata names the object",
    )


def _about(kind: FindingKind, known: ExpectedObject, detail: str) -> Finding:
    return Finding(
        kind=kind.value,
        topic=known.topic,
        partition=known.partition,
        segment_id=known.segment_id,
        object_key=known.key,
        start_offset=known.start_offset,
        end_offset=known.end_offset,
        length_bytes=known.length_bytes,
        detail=detail,
    )
