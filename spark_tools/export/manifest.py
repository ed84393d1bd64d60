"""The manifest of an export: what its directory holds, and how something comes to be in it.

    _attempts/<attempt>/                files being written; no reader of `data` sees them
    _attempts/<attempt>.<id>.json       a line about to be added
    manifest/topic_id=…/partition=…/<number>.json   a line: from then on its range counts
    data/topic=…/topic_id=…/partition=…/            the files of lines, by date if that is wanted

A line is added by a rename to the next number of its partition, and only after all lines with lower
numbers were read and have none of its offsets. Then it is read again: if another export's line is
there, this one does not count. Then its files are moved to where it says they are. What was killed
in between is completed by the next export. So `data` has all that the manifest names once no export
is at work.

Lines never overlap where a rename refuses to replace a file (HDFS). Elsewhere (`file:`, S3) two
exports of the same topics must not run at once: a rename that replaces a line after its export has
read it again is not noticed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

from rsm.segment.errors import CorruptError, FencedError, InvalidConfigError
from spark_tools.export.file_ranges import written_name
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
        self._known: dict[str, ExportedRange] = {}

    def lines(self) -> list[ExportedRange]:
        """What was exported so far. CorruptError."""
        lines = [ExportedRange.of_line(text) for text in self._files.texts(_LINES)]
        self._known = {_path(line): line for line in lines}
        return lines

    def complete(self, lines: Iterable[ExportedRange], now: datetime) -> None:
        """Do what exports that were killed left to do; `lines` are those of the manifest."""
        attempts = self._files.names(_ATTEMPTS)
        started = set(attempts)
        interrupted = [line for line in lines if line.attempt in started]
        for line in interrupted:
            self._location(line)
        for attempt in {line.attempt for line in interrupted}:
            if not self._has_files(self.directory(attempt)):
                self.discard(attempt)
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

    def discard(self, attempt: str) -> None:
        """Remove what an attempt has written and no line has."""
        self._files.remove(self.directory(attempt))

    def add(self, line: ExportedRange) -> ExportedRange:
        """Have a range count whose files are written; the line as it was added.

        FencedError if another export has done any of it meanwhile, and InvalidConfigError if a file
        is not where the driver looks for it; then no file of it counts.
        """
        self._require_written(line)
        staged = f"{_ATTEMPTS}/{line.attempt}.{uuid4()}.json"
        while True:
            number = self._next_number(line)
            numbered = replace(line, number=number)
            self._files.write(staged, numbered.to_line())
            if self._files.move(staged, _path(numbered)):
                self._require_own(numbered)
                break
            self._files.remove(staged)
            if self._next_number(line) == number:
                raise CorruptError("a line of a manifest cannot be added", path=_path(numbered))
        self._known[_path(numbered)] = numbered
        self._location(numbered)
        return numbered

    def _require_written(self, line: ExportedRange) -> None:
        """Raise InvalidConfigError unless all files of a line are in its attempt's directory."""
        source = self.directory(line.attempt)
        names: dict[str, set[str]] = {}
        for file in map(written_name, line.files):
            directory, _, name = file.rpartition("/")
            if directory not in names:
                names[directory] = set(self._files.names(f"{source}/{directory}".rstrip("/")))
            if name not in names[directory]:
                raise not_in_the_output(f"{source}/{file}")

    def _require_own(self, line: ExportedRange) -> None:
        """Raise FencedError if another export's line is in its place.

        Two exports whose moves cross may both have found no line there, and the last one counts.
        """
        if self._files.read(_path(line)) != line.to_line():
            raise FencedError(
                "another export has added a line under the same number",
                partition=f"{line.topic}:{line.partition}",
                offsets=line.offsets,
                path=_path(line),
            )

    def _next_number(self, line: ExportedRange) -> int:
        """One more than that of the last line of the partition. FencedError if any overlaps."""
        directory = _directory(line)
        names = self._files.names(directory)
        for name in names:
            path = f"{directory}/{name}"
            known = self._known.get(path)
            if known is None:
                known = self._known[path] = ExportedRange.of_line(self._files.read(path))
            if known.offsets.overlaps(line.offsets):
                raise FencedError(
                    "another export has exported these offsets meanwhile",
                    partition=f"{line.topic}:{line.partition}",
                    offsets=line.offsets,
                )
        return int(names[-1].removesuffix(".json")) + 1 if names else 0

    def _location(self, line: ExportedRange) -> None:
        """Move a line's files to where it says that they are."""
        source = self.directory(line.attempt)
        for name in line.files:
            path, target = f"{source}/{written_name(name)}", f"{line.path}/{name}"
            if not self._files.move(path, target) and not self._files.exists(target):
                raise CorruptError("a file of an export is gone", file=path, target=target)

    def _has_files(self, directory: str) -> bool:
        """Whether there are any, but for Spark's own."""
        names = [name for name in self._files.names(directory) if not name.startswith(("_", "."))]
        return any("=" not in name or self._has_files(f"{directory}/{name}") for name in names)


def staged_path(now: datetime) -> str:
    """Where a file is written that is to be moved; exports remove what is left after a week."""
    return f"{_ATTEMPTS}/{now:{_TIME}}-{uuid4()}.json"


def not_in_the_output(file: str) -> InvalidConfigError:
    """The error of a file that an executor has written and the driver cannot see."""
    return InvalidConfigError(
        "the driver does not see a file that an executor has written: "
        "export to a directory that all hosts share, or to another store",
        file=file,
    )


def _directory(line: ExportedRange) -> str:
    return f"{_LINES}/topic_id={line.topic_id}/partition={line.partition}"


def _path(line: ExportedRange) -> str:
    return f"{_directory(line)}/{line.number:020d}.json"
