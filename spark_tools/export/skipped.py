"""Records the ranges that exports to a directory skipped, until they are exported.

    _attempts/<time>-<id>.json          a record before it is added
    skipped/topic_id=…/partition=…/<start offset>-<end offset>.<checksum>.json

The records do not affect later exports: the next export writes every stored range that is
not in the manifest. The records give the reasons. After a range has expired, its record shows that
the loss was reported.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from enum import Enum
from zlib import crc32

from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import CorruptError
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.log_line import LogLine
from rsm.segment.ranges import OffsetRange, missing
from spark_tools.export.manifest import staged_path
from spark_tools.files import Files

_log = logging.getLogger(__name__)
_RECORDS = "skipped"
Partition = tuple[str, int]
"""A topic's id as text, and the partition's number."""


class SkipCause(Enum):
    """Lists why a range is skipped: lost or damaged, expired unexported, or failed for now."""

    UNREADABLE = "unreadable"
    EXPIRED = "expired"
    FAILED = "failed"


SKIPPED_RANGE = JsonShape(
    name="SkippedRange",
    meaning="Offsets that are in no file: [what an export skips](spark.md#what-an-export-skips).",
    fields={
        "topic": JsonField(JsonKind.TEXT, "The topic."),
        "partition": JsonField(JsonKind.COUNT, "The partition's number."),
        "start_offset": JsonField(JsonKind.OFFSET, "The first offset."),
        "end_offset": JsonField(JsonKind.OFFSET, "The offset after the last one."),
        "cause": JsonField(
            JsonKind.TEXT,
            "`unreadable` (lost or damaged), `expired` (before its export) or `failed` (for now).",
        ),
        "reason": JsonField(JsonKind.TEXT, "Why the range was skipped."),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRange:
    """Represents offsets [start_offset, end_offset) that are in no file.

    `is_final` is true if an export has reported the loss.
    """

    topic: str
    topic_id: str
    partition: int
    start_offset: int
    end_offset: int
    cause: str
    reason: str
    is_final: bool = False

    @property
    def offsets(self) -> OffsetRange:
        return OffsetRange(start_offset=self.start_offset, end_offset=self.end_offset)

    @property
    def key(self) -> Partition:
        return self.topic_id, self.partition

    def within(self, offsets: OffsetRange) -> SkippedRange:
        """Return the record with the offsets `offsets`."""
        return replace(self, start_offset=offsets.start_offset, end_offset=offsets.end_offset)

    @classmethod
    def of(
        cls, partition: TopicIdPartition, offsets: OffsetRange, cause: SkipCause, reason: object
    ) -> SkippedRange:
        return cls(
            topic=partition.topic,
            topic_id=id_to_text(partition.topic_id),
            partition=partition.partition,
            start_offset=offsets.start_offset,
            end_offset=offsets.end_offset,
            cause=cause.value,
            reason=str(reason),
        )

    @classmethod
    def of_text(cls, text: str) -> SkippedRange:
        """Decode a record from JSON. Raises CorruptError."""
        try:
            found = cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise CorruptError(
                "cannot read the record of a skipped range: it is malformed", found=text[:200]
            ) from error
        if any(type(getattr(found, field.name)).__name__ != field.type for field in fields(cls)):
            raise CorruptError(
                "cannot read the record of a skipped range: it is malformed", found=text[:200]
            )
        return found

    @property
    def _text(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    @property
    def _path(self) -> str:
        """Return the path; it contains a checksum so that no rename replaces another record."""
        checksum = f"{crc32(self._text.encode()):08x}"
        name = f"{self.start_offset:020d}-{self.end_offset:020d}.{checksum}.json"
        return f"{_RECORDS}/topic_id={self.topic_id}/partition={self.partition}/{name}"


class SkippedRanges:
    """Represents the skipped ranges of the directory of `files`. Not thread-safe.

    Ignores a malformed record and logs a warning.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._written: dict[str, SkippedRange] = {}
        for path in _paths(files, _RECORDS):
            try:
                self._written[path] = SkippedRange.of_text(files.read(path))
            except (CorruptError, UnicodeDecodeError) as error:
                _log.warning(
                    LogLine(
                        "ignored a file that is not the record of a skipped range: "
                        "check the offsets in its name, then delete it",
                        file=path,
                        error=error,
                    )
                )

    def ranges(self) -> list[SkippedRange]:
        """Return all recorded ranges."""
        return list(self._written.values())

    def replace(self, ranges: Iterable[SkippedRange]) -> None:
        """Replace the recorded ranges: add the new files, then remove the old ones."""
        wanted = {each._path: each for each in ranges}  # noqa: SLF001 - this module's
        for path, each in wanted.items():
            if self._written.get(path) != each:
                self._add(path, each)
        for path in self._written.keys() - wanted.keys():
            self._files.remove(path)
        self._written = wanted

    def _add(self, path: str, skipped: SkippedRange) -> None:
        """Write a staged file and move it, so that readers see only complete records."""
        staged = staged_path(datetime.now(UTC))
        self._files.write(staged, skipped._text)  # noqa: SLF001 - as above
        if not self._files.move(staged, path):  # another export has recorded the same range
            self._files.remove(staged)


def _paths(files: Files, directory: str) -> list[str]:
    """Return the paths of all JSON files in a directory and its subdirectories."""
    found = []
    for name in files.names(directory):
        path = f"{directory}/{name}"
        found += [path] if name.endswith(".json") else _paths(files, path)
    return found


def unexported(
    ranges: Iterable[SkippedRange], covered: Mapping[Partition, Iterable[OffsetRange]]
) -> list[SkippedRange]:
    """Return the parts of `ranges` outside `covered`; overlapping offsets stay in the first range.

    `covered` are each partition's exported ranges and the ranges that need no export.
    """
    taken = {key: list(offsets) for key, offsets in covered.items()}
    found = []
    for each in ranges:
        known = taken.setdefault(each.key, [])
        for part in missing(sorted(known), each.offsets):
            found.append(each.within(part))
            known.append(part)
    return found


def expired(
    ranges: Iterable[SkippedRange], log_starts: Mapping[Partition, int]
) -> list[SkippedRange]:
    """Return the parts below the log start offsets as final; omit ranges that were final before."""
    return [
        replace(
            each,
            end_offset=min(each.end_offset, log_starts[each.key]),
            cause=SkipCause.EXPIRED.value,
            is_final=True,
        )
        for each in ranges
        if not each.is_final and each.start_offset < log_starts.get(each.key, 0)
    ]


def skipped_json(skipped: SkippedRange) -> dict[str, object]:
    """Return the range as JSON values for a report; `SKIPPED_RANGE` describes them."""
    return {
        name: value
        for name, value in asdict(skipped).items()
        if name not in ("topic_id", "is_final")
    }
