"""Encodes the objects of a segment in Pulsar's formats: data, index and companion. Pure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass

from rsm.layout.blocks.ledger_attributes import SOFTWARE_VERSION_KEY, Role, ledger_attributes
from rsm.layout.companion import Companion, encode_companion
from rsm.layout.keys import LedgerPart
from rsm.layout.segment_layout import (
    LogToWrite,
    ObjectContent,
    ObjectOrigin,
    SegmentEncoding,
    record_stored,
)
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import BytesSource, ContentSource, SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject, short_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockObjects:
    """Represents a segment's objects by role; they may be in any order in the metadata."""

    data: StoredObject
    index: StoredObject
    companion: StoredObject

    @classmethod
    def of(cls, segment: RemoteLogSegmentMetadata | LogToWrite, layout: str) -> BlockObjects:
        """Find the objects by their names. Raises CorruptError if they are not one of each role."""
        found: dict[LedgerPart, StoredObject] = {}
        for stored in segment.objects:
            part = next(p for p in reversed(LedgerPart) if stored.key.endswith(p.value))
            found[part] = stored
        if len(segment.objects) != len(LedgerPart) or found.keys() != set(LedgerPart):
            raise CorruptError(
                f"the objects of a {layout} segment are invalid",
                segment_id=segment.segment_id,
                expected="one data object, one index object and one companion",
                found=" ".join(short_keys([stored.key for stored in segment.objects])),
            )
        return cls(
            data=found[LedgerPart.DATA],
            index=found[LedgerPart.INDEX],
            companion=found[LedgerPart.COMPANION],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEncoding:
    """Represents the encoding of a log; `data` is the source of the data object.

    `index` encodes the index object; it is called after the data object was stored.
    """

    data: ContentSource
    index: Callable[[RemoteLogSegmentMetadata], bytes]

    def of(self, log: LogToWrite, layout: str, origin: ObjectOrigin | None) -> SegmentEncoding:
        """Return the contents of all objects of a segment."""
        origins = origin.attributes(version_key=SOFTWARE_VERSION_KEY) if origin else {}

        def closing(
            metadata: RemoteLogSegmentMetadata, companions: SegmentCompanions
        ) -> Generator[ObjectContent, StoredObject, None]:
            parts = BlockObjects.of(metadata, layout)
            stored = yield ObjectContent(
                key=parts.index.key,
                source=BytesSource(content=self.index(metadata)),
                attributes=_attributes(metadata.segment_id, Role.INDEX, origins),
            )
            record = Companion(metadata=record_stored(metadata, stored), companions=companions)
            yield ObjectContent(
                key=parts.companion.key,
                source=BytesSource(content=encode_companion(record)),
                inline_attributes=origins,
            )

        return SegmentEncoding(
            log_object=ObjectContent(
                key=BlockObjects.of(log, layout).data.key,
                source=self.data,
                attributes=_attributes(log.segment_id, Role.DATA, origins),
            ),
            closing=closing,
        )


def _attributes(
    segment_id: RemoteLogSegmentId, role: Role, origin: Mapping[str, str]
) -> Mapping[str, str]:
    partition = segment_id.topic_id_partition
    name = f"{partition.topic}-{partition.partition}"
    return ledger_attributes(role, {"managedledgername": name, **origin})
