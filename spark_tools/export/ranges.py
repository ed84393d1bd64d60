"""Computes which stored ranges are not exported yet, from the manifest and the plan. Pure."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields

from rsm.segment.errors import CorruptError, InvalidConfigError
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.ranges import OffsetRange, missing
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Piece
from spark_tools.schemas.decoding import NOT_DECODING, Decoding

_OPTIONS = {"partition_by": "--partition-by"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRange:
    """Represents a line of the manifest: a range of offsets whose records are all in `files`.

    `files` are relative to `path`, and their names begin with offsets. `attempt` names the attempt
    that wrote the files. `number` counts the lines of the partition from 0. `columns` are
    comma-separated in alphabetical order; `partition_by` is `date` or empty.
    """

    topic: str
    topic_id: str
    partition: int
    start_offset: int
    end_offset: int
    records_count: int
    columns: str
    isolation: str
    partition_by: str
    path: str
    files: tuple[str, ...]
    attempt: str
    number: int = 0

    @property
    def offsets(self) -> OffsetRange:
        return OffsetRange(start_offset=self.start_offset, end_offset=self.end_offset)

    def to_line(self) -> str:
        """Encode the line as JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def of_line(cls, text: str) -> ExportedRange:
        """Decode a line.

        Raises CorruptError, and InvalidConfigError if an earlier version wrote the line.
        """
        try:
            values = json.loads(text)
            if isinstance(values, dict) and "attempt" in values and "files" not in values:
                raise InvalidConfigError(
                    "cannot export to this directory: an earlier version of rlm used it",
                    path=values.get("path"),
                    advice="Export to another directory",
                )
            found = cls(**{**values, "files": tuple(values["files"])})
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptError(
                "cannot read the manifest: it has a malformed line", line=text[:200]
            ) from error
        for field in fields(cls):
            expected = "tuple" if field.name == "files" else field.type
            if type(getattr(found, field.name)).__name__ != expected:
                raise CorruptError(
                    "cannot read the manifest: it has a malformed line", line=text[:200]
                )
        if not all(isinstance(name, str) for name in found.files):
            raise CorruptError("cannot read the manifest: it has a malformed line", line=text[:200])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """Represents the form of an export's rows, which is the same in all files."""

    columns: str
    isolation: str
    partition_by: str

    @classmethod
    def of(
        cls, options: ReadOptions, *, by_date: bool, decoding: Decoding = NOT_DECODING
    ) -> ExportFormat:
        """Return the format; a colon and the data format follow the name of a decoded column."""
        formats = {each.column: f":{each.schema.format.value}" for each in decoding.readers}
        names = decoding.columns(options.columns)
        return cls(
            columns=",".join(sorted(f"{name}{formats.get(name, '')}" for name in names)),
            isolation=options.isolation.value,
            partition_by="date" if by_date else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRange:
    """Represents a range of offsets to export."""

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange


def require_same_rows(done: Iterable[ExportedRange], wanted: ExportFormat) -> None:
    """Raise InvalidConfigError if earlier files have another format."""
    for each in done:
        for name, value in asdict(wanted).items():
            if (before := getattr(each, name)) != value:
                raise InvalidConfigError(
                    "cannot export to this directory: an earlier export used another value",
                    option=_OPTIONS.get(name, name),
                    found=value or "none",
                    expected=before or "none",
                    advice="Export to another directory",
                )


def remaining(pieces: Iterable[Piece], done: Iterable[ExportedRange]) -> list[PlannedRange]:
    """Return the ranges of each partition that are planned but not exported, ascending."""
    planned: dict[TopicIdPartition, list[OffsetRange]] = {}
    for piece in pieces:
        planned.setdefault(piece.topic_id_partition, []).append(piece.offsets)
    exported = by_partition(done)
    return [
        PlannedRange(topic_id_partition=tip, offsets=left)
        for tip, offsets in sorted(planned.items())
        for left in missing(exported.get(_key(tip), ()), _hull(offsets))
        if any(each.overlaps(left) for each in offsets)
    ]


def lost(
    planned: PlannedRange, exported: Sequence[OffsetRange], known: Iterable[OffsetRange]
) -> tuple[OffsetRange, ...]:
    """Return the ranges that expired between `planned` and the last exported range below it.

    `exported` are the partition's exported ranges, ascending. Omits the ranges `known`: recorded
    gaps, and skipped ranges already on record.
    """
    start_offset = planned.offsets.start_offset
    count = bisect_right(exported, start_offset, key=lambda each: each.end_offset)
    if not count:
        return ()
    between = OffsetRange(start_offset=exported[count - 1].end_offset, end_offset=start_offset)
    return missing(sorted(known), between)


def _hull(offsets: Sequence[OffsetRange]) -> OffsetRange:
    return OffsetRange(
        start_offset=min(each.start_offset for each in offsets),
        end_offset=max(each.end_offset for each in offsets),
    )


def by_partition(done: Iterable[ExportedRange]) -> dict[tuple[str, int], list[OffsetRange]]:
    """Return the exported ranges of each partition, ascending."""
    found: dict[tuple[str, int], list[OffsetRange]] = {}
    for each in done:
        found.setdefault((each.topic_id, each.partition), []).append(each.offsets)
    return {key: sorted(offsets) for key, offsets in found.items()}


def _key(tip: TopicIdPartition) -> tuple[str, int]:
    return id_to_text(tip.topic_id), tip.partition
