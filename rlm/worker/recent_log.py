"""Keeps the last lines of each process's log in `state.dir`, for `rlm debug bundle`.

    state.dir/log/manager.log      the newest lines
    state.dir/log/manager.log.1    the lines before those

The files contain the lines that the process writes to standard error, with the secrets of its
configuration masked. They outlive the process, so they also contain the lines before a `kill -9`.
Their owner and group can read them. The manager returns them for signed requests
(rlm.rest.manager_api).

Disk: 2 * FILE_MAX_BYTES for each process. Memory: one line while it is written; for
`recent_log_text`, also the files of one process and a result of at most TEXT_MAX_BYTES.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from rlm.config.effective import SecretMask
from rlm.source.denied_access import denied_access
from rlm.worker.log_lines import KafkaClientFilter, OneLineFormatter
from rsm.segment.errors import RetriableError

FILE_MAX_BYTES = 1 << 20
LINE_MAX_BYTES = 16 << 10
TEXT_MAX_BYTES = 1 << 20
_FOLDER = "log"
_SUFFIX = ".log"
_PREVIOUS = ".1"
_SUFFIXES = (_SUFFIX, _SUFFIX + _PREVIOUS)
_MODE = 0o640


class RecentLog(logging.Handler):
    """Writes lines to one process's files. Thread-safe.

    Ignores disk errors, because standard error also gets all lines.
    """

    def __init__(self, path: Path, mask: SecretMask) -> None:
        super().__init__()
        self.setFormatter(OneLineFormatter())
        self.addFilter(KafkaClientFilter())
        self._path = path
        self._mask = mask
        self._file: io.FileIO | None = None
        self._size_bytes = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record).encode("utf-8", "backslashreplace")
        except Exception:  # noqa: BLE001 - a plug-in's values may raise anything
            self.handleError(record)
            return
        # Mask before truncating, because a truncated secret would not be recognized.
        line = self._mask.masked(line)[: LINE_MAX_BYTES - 1] + b"\n"
        try:
            self._write(line)
        except OSError:
            self._close()

    def close(self) -> None:
        self.acquire()
        try:
            self._close()
        finally:
            self.release()
        super().close()

    def _write(self, line: bytes) -> None:
        if self._file is None:
            self._open()
        if self._size_bytes + len(line) > FILE_MAX_BYTES:
            self._close()
            self._path.replace(self._path.with_name(self._path.name + _PREVIOUS))
            self._open()
        assert self._file is not None
        self._size_bytes += self._file.write(line)

    def _open(self) -> None:
        self._path.parent.mkdir(mode=0o750, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
        self._file = io.FileIO(descriptor, "ab")
        self._size_bytes = os.fstat(descriptor).st_size

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def keep_recent_log(state_dir: Path, process: str, mask: SecretMask) -> None:
    """Also write this process's log lines to its files in `state_dir` from now on.

    The caller or its parent must have locked the directory (rlm.process.state_dir), so that no
    other process writes to the same files.
    """
    path = state_dir / _FOLDER / f"{process}{_SUFFIX}"
    logging.getLogger().addHandler(RecentLog(path, mask))


def logged_processes(state_dir: Path) -> tuple[str, ...]:
    """Return the names of the processes whose logs are kept.

    Raises RetriableError if there is no log, or if the directory cannot be read.
    """
    try:
        # Unlike glob, scandir reports refused access.
        with os.scandir(state_dir / _FOLDER) as entries:
            files = [each.name for each in entries if each.name.endswith(_SUFFIXES)]
    except FileNotFoundError:
        files = []
    except OSError as error:
        raise _unreadable(state_dir / _FOLDER, error) from error
    if not files:
        raise RetriableError(
            "cannot read the recent log: no process has kept its log in this directory",
            state_dir=state_dir,
            advice="Look at the log of your service manager",
        )
    names = {each.removesuffix(_PREVIOUS).removesuffix(_SUFFIX) for each in files}
    return tuple(sorted(names))


def recent_log(state_dir: Path, process: str) -> bytes:
    """Return the last lines of a process, which may have ended. Raises RetriableError."""
    newest = state_dir / _FOLDER / f"{process}{_SUFFIX}"
    try:
        # In this order, a file that is renamed meanwhile is read twice instead of not at all.
        lines = _content(newest)
        return _content(newest.with_name(newest.name + _PREVIOUS)) + lines
    except OSError as error:
        raise _unreadable(newest, error) from error


def recent_log_text(state_dir: Path) -> bytes:
    """Return the last lines of all processes; a line `==> PROCESS.log <==` precedes each log.

    Each process gets an equal share of TEXT_MAX_BYTES. Raises RetriableError.
    """
    processes = logged_processes(state_dir)
    share_bytes = TEXT_MAX_BYTES // len(processes)
    return b"\n".join(_texts(state_dir, processes, share_bytes))


def _texts(state_dir: Path, processes: Iterable[str], share_bytes: int) -> Iterable[bytes]:
    for process in processes:
        head = f"==> {process}{_SUFFIX} <==\n".encode()
        yield head + _last_lines(recent_log(state_dir, process), share_bytes - len(head) - 1)


def _last_lines(text: bytes, max_bytes: int) -> bytes:
    """Return the last whole lines of `text` that fit into `max_bytes`."""
    if len(text) <= max_bytes:
        return text
    start = text.find(b"\n", len(text) - max_bytes - 1) + 1
    return text[start:]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _unreadable(path: Path, error: OSError) -> RetriableError:
    fields, advice = {}, "Check the disk of state.dir"
    if isinstance(error, PermissionError):
        fields = dict(denied_access(Path(error.filename)))
        advice = "Run the command as the user of `rlm run`"
    return RetriableError(
        "cannot read the recent log",
        path=path,
        **fields,
        reason=error.strerror,
        advice=advice,
    )
