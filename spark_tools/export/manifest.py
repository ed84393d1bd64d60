"""Maintains the manifest of an export: a list of the ranges that its directory contains.

    _attempts/<attempt>/                files being written, invisible to readers of `data`
    _attempts/<attempt>.<id>.json       a line before it is added
    manifest/topic_id=…/partition=…/<number>.json   a line, whose range counts as exported
    data/topic=…/topic_id=…/partition=…/            the files of lines, optionally by date

**Duplicate rows:** two exports of the same topics must not run at once where a rename can replace a
file (`file:`, S3). The rename can replace the line of another export that has already checked its
line. On HDFS, a rename refuses to replace a file, so lines never overlap.

An export reads all lines of a partition, and fails if one of them overlaps its own. It adds its
line by a rename to the next number, and reads the line again. If it reads another export's line,
its own line does not count. Otherwise, it moves the files to the paths in its line. If the export
is interrupted, the next one moves the files. So when an export has finished, `data` contains all
files that the manifest names.
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
_KEPT = timedelta(days=7)  # This is far longer than an attempt takes.


class Manifest:
    """Represents the manifest of the directory of `files`. Not thread-safe.

    Several exports may use the directory, within the limits above.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: dict[str, ExportedRange] = {}

    def lines(self) -> list[ExportedRange]:
        """Return all exported ranges. Raises the errors of `ExportedRange.of_line`."""
        lines = [ExportedRange.of_line(text) for text in self._files.texts(_LINES)]
        self._known = {_path(line): line for line in lines}
        return lines

    def complete(self, lines: Iterable[ExportedRange], now: datetime) -> None:
        """Complete interrupted exports, and remove the files of attempts older than a week.

        `lines` are all lines of the manifest. Raises CorruptError if a file no longer exists.
        """
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
        """Return the name of a new attempt, which writes into its `directory`."""
        return f"{now:{_TIME}}-{uuid4()}"

    def directory(self, attempt: str) -> str:
        """Return the directory of an attempt's files."""
        return f"{_ATTEMPTS}/{attempt}"

    def discard(self, attempt: str) -> None:
        """Remove an attempt's files that no line names."""
        self._files.remove(self.directory(attempt))

    def add(self, line: ExportedRange) -> ExportedRange:
        """Add the line of a range whose files are written; return the line with its number.

        Raises FencedError if another export has added a line with some of these offsets or with the
        same number, and InvalidConfigError if the driver does not see a file. In both cases, no
        file counts as exported. Raises CorruptError if the line cannot be added, or if a file no
        longer exists.
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
                raise CorruptError("cannot add a line to the manifest", path=_path(numbered))
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
        """Raise FencedError if another export's line has this number.

        If two exports find the number free and rename at once, the last rename counts.
        """
        if self._files.read(_path(line)) != line.to_line():
            raise FencedError(
                "cannot add the line to the manifest: another export used its number",
                partition=f"{line.topic}:{line.partition}",
                offsets=line.offsets,
                path=_path(line),
                advice="Run one export of a topic at a time",
            )

    def _next_number(self, line: ExportedRange) -> int:
        """Return the next number of the partition. Raises FencedError if a line overlaps."""
        directory = _directory(line)
        names = self._files.names(directory)
        for name in names:
            path = f"{directory}/{name}"
            known = self._known.get(path)
            if known is None:
                known = self._known[path] = ExportedRange.of_line(self._files.read(path))
            if known.offsets.overlaps(line.offsets):
                raise FencedError(
                    "cannot add the line to the manifest: another export wrote these offsets",
                    partition=f"{line.topic}:{line.partition}",
                    offsets=line.offsets,
                    advice="Run one export of a topic at a time",
                )
        return int(names[-1].removesuffix(".json")) + 1 if names else 0

    def _location(self, line: ExportedRange) -> None:
        """Move a line's files to the paths in the line."""
        source = self.directory(line.attempt)
        for name in line.files:
            path, target = f"{source}/{written_name(name)}", f"{line.path}/{name}"
            if not self._files.move(path, target) and not self._files.exists(target):
                raise CorruptError(
                    "cannot move a file of the export: it no longer exists",
                    file=path,
                    target=target,
                )

    def _has_files(self, directory: str) -> bool:
        """Return whether the directory contains files other than Spark's own."""
        names = [name for name in self._files.names(directory) if not name.startswith(("_", "."))]
        return any("=" not in name or self._has_files(f"{directory}/{name}") for name in names)


def staged_path(now: datetime) -> str:
    """Return a path for a file that will be moved; if it is not, exports remove it after a week."""
    return f"{_ATTEMPTS}/{now:{_TIME}}-{uuid4()}.json"


def not_in_the_output(file: str) -> InvalidConfigError:
    """Return the error for a file that an executor wrote and the driver cannot see."""
    return InvalidConfigError(
        "cannot export to the directory: the driver does not see an executor's file",
        file=file,
        advice="Export to a directory that all hosts share, or to another file system",
    )


def _directory(line: ExportedRange) -> str:
    return f"{_LINES}/topic_id={line.topic_id}/partition={line.partition}"


def _path(line: ExportedRange) -> str:
    return f"{_directory(line)}/{line.number:020d}.json"
