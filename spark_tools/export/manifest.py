"""The manifest of an export: what its directory holds, and how something comes to be in it.

    _attempts/<attempt>/                files being written; no reader of `data` sees them
    _attempts/<attempt>.json            a line about to be added
    manifest/topic_id=…/partition=…/<start offset>.json   a line: from then on the range counts
    data/topic=…/topic_id=…/partition=…/from=…/           the files of a line

A line is added by a rename, which one export of several alone can do; then the files are moved to
where it says they are. One that was killed in between is completed by the next. So `data` never
has an offset twice, and all that the manifest names once no export is at work.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import takewhile
from uuid import uuid4

from rsm.segment.errors import CorruptError, FencedError
from spark_tools.export.ranges import ExportedRange
from spark_tools.files import Files

_LINES = "manifest"
_ATTEMPTS = "_attempts"
_TIME = "%Y%m%dT%H%M%S"
_KEPT = timedelta(days=7)  # longer than any export of a range takes


class Manifest:
    """Of the output directory that `files` are below. One thread's; exports may run side by side.

    What is left of killed ones is removed after a week.
    """

    def __init__(self, files: Files) -> None:
        self._files = files

    def lines(self) -> list[ExportedRange]:
        """What was exported so far. CorruptError."""
        return [ExportedRange.of_line(text) for text in self._files.texts(_LINES)]

    def complete(self, lines: Iterable[ExportedRange], now: datetime) -> None:
        """Do what exports that were killed left to do; `lines` are those of the manifest."""
        attempts = self._files.names(_ATTEMPTS)
        for line in lines:
            if line.attempt in attempts:
                self._place(line)
        oldest = f"{now - _KEPT:{_TIME}}"
        for name in attempts:
            if name < oldest:
                self._files.remove(f"{_ATTEMPTS}/{name}")

    def new_attempt(self, now: datetime) -> str:
        """The name of an attempt; what it writes goes into `directory` of it."""
        return f"{now:{_TIME}}-{uuid4()}"

    def directory(self, attempt: str) -> str:
        """Where an attempt writes its files."""
        return f"{_ATTEMPTS}/{attempt}"

    def add(self, line: ExportedRange) -> None:
        """Have a range count whose files are written.

        FencedError if another export has done any of it meanwhile; then nothing of it is left.
        """
        staged = f"{_ATTEMPTS}/{line.attempt}.json"
        self._files.write(staged, line.to_line())
        other = self._overlapping(line)
        if other is not None or not self._files.move(staged, _path(line)):
            self._files.remove(staged)
            self._files.remove(self.directory(line.attempt))
            raise FencedError(
                "another export has exported these offsets meanwhile",
                partition=f"{line.topic}:{line.partition}",
                offsets=line.offsets,
            )
        self._place(line)

    def _overlapping(self, line: ExportedRange) -> ExportedRange | None:
        """A line of the same partition that holds any of its offsets."""
        directory = _directory(line)
        names = self._files.names(directory)
        below = list(takewhile(lambda name: name < _name(line.end_offset), names))
        if not below:
            return None
        nearest = ExportedRange.of_line(self._files.read(f"{directory}/{below[-1]}"))
        return nearest if nearest.offsets.overlaps(line.offsets) else None

    def _place(self, line: ExportedRange) -> None:
        """Move a line's files to where it says that they are, but for Spark's own."""
        source = self.directory(line.attempt)
        for name in self._files.names(source):
            target = f"{line.path}/{name}"
            if name.startswith(("_", ".")) or self._files.move(f"{source}/{name}", target):
                continue
            if not self._files.exists(target):
                raise CorruptError("a file of an export is gone", file=f"{source}/{name}")
        self._files.remove(source)


def _directory(line: ExportedRange) -> str:
    return f"{_LINES}/topic_id={line.topic_id}/partition={line.partition}"


def _path(line: ExportedRange) -> str:
    return f"{_directory(line)}/{_name(line.start_offset)}"


def _name(offset: int) -> str:
    return f"{offset:020d}.json"
