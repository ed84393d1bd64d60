"""What is still to be exported, given what was and what is stored. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields

from rsm.segment.errors import CorruptError, InvalidConfigError
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.ranges import OffsetRange, missing
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRange:
    """A line of the manifest: offsets of a partition that are in files whole.

    `path` is where the files are, `attempt` where they were written before they counted; `columns`
    are comma-separated in alphabetical order.
    """

    topic: str
    topic_id: str
    partition: int
    start_offset: int
    end_offset: int
    records_count: int
    columns: str
    isolation: str
    path: str
    attempt: str

    @property
    def offsets(self) -> OffsetRange:
        return OffsetRange(start_offset=self.start_offset, end_offset=self.end_offset)

    def to_line(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def of_line(cls, text: str) -> ExportedRange:
        """Read it. CorruptError."""
        try:
            found = cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise CorruptError("not a line of a manifest", line=text[:200]) from error
        types = {field.name: type(getattr(found, field.name)).__name__ for field in fields(cls)}
        if any(types[field.name] != field.type for field in fields(cls)):
            raise CorruptError("not a line of a manifest", line=text[:200])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRange:
    """Offsets to be exported."""

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange

    @property
    def path(self) -> str:
        """Below the output's directory; topic and partition are columns of who reads it."""
        tip = self.topic_id_partition
        topic = f"topic={tip.topic}/topic_id={id_to_text(tip.topic_id)}"
        return f"data/{topic}/partition={tip.partition}/from={self.offsets.start_offset:020d}"

    def exported(self, options: ReadOptions, records_count: int, attempt: str) -> ExportedRange:
        """Once its files are whole."""
        tip = self.topic_id_partition
        return ExportedRange(
            topic=tip.topic,
            topic_id=id_to_text(tip.topic_id),
            partition=tip.partition,
            start_offset=self.offsets.start_offset,
            end_offset=self.offsets.end_offset,
            records_count=records_count,
            columns=_columns(options),
            isolation=options.isolation.value,
            path=self.path,
            attempt=attempt,
        )


def require_same_rows(done: Iterable[ExportedRange], options: ReadOptions) -> None:
    """InvalidConfigError if what was exported has other columns, or other records in it."""
    given = {"columns": _columns(options), "isolation": options.isolation.value}
    for each in done:
        for option, value in given.items():
            if (before := getattr(each, option)) != value:
                raise InvalidConfigError(
                    "what was exported there is of another kind: export to another directory",
                    option=option,
                    found=value,
                    expected=before,
                )


def remaining(pieces: Iterable[Piece], done: Iterable[ExportedRange]) -> list[PlannedRange]:
    """Per partition what is planned, less what was exported; ascending."""
    planned: dict[TopicIdPartition, list[OffsetRange]] = {}
    for piece in pieces:
        planned.setdefault(piece.topic_id_partition, []).append(piece.offsets)
    exported = _by_partition(done)
    return [
        PlannedRange(topic_id_partition=tip, offsets=left)
        for tip, offsets in sorted(planned.items())
        for left in missing(exported.get(_key(tip), ()), _hull(offsets))
        if any(each.overlaps(left) for each in offsets)
    ]


def lost(
    planned: PlannedRange, done: Iterable[ExportedRange], gaps: Iterable[OffsetRange]
) -> OffsetRange | None:
    """What expired between what was exported and what is to be; None if nothing did.

    `gaps` are recorded ones: what lay there is in no store.
    """
    exported = _by_partition(done).get(_key(planned.topic_id_partition), ())
    start_offset = planned.offsets.start_offset
    ends = [each.end_offset for each in exported if each.end_offset <= start_offset]
    if not ends:
        return None
    between = OffsetRange(start_offset=max(ends), end_offset=start_offset)
    return next(iter(missing(gaps, between)), None)


def _columns(options: ReadOptions) -> str:
    return ",".join(sorted(options.columns))


def _hull(offsets: Sequence[OffsetRange]) -> OffsetRange:
    return OffsetRange(
        start_offset=min(each.start_offset for each in offsets),
        end_offset=max(each.end_offset for each in offsets),
    )


def _by_partition(done: Iterable[ExportedRange]) -> dict[tuple[str, int], list[OffsetRange]]:
    """What was exported of each partition, ascending."""
    found: dict[tuple[str, int], list[OffsetRange]] = {}
    for each in done:
        found.setdefault((each.topic_id, each.partition), []).append(each.offsets)
    return {key: sorted(offsets) for key, offsets in found.items()}


def _key(tip: TopicIdPartition) -> tuple[str, int]:
    return id_to_text(tip.topic_id), tip.partition
