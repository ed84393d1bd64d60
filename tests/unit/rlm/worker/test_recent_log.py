"""The last log lines of a process, which its files keep within a size and without secrets."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rlm.config.effective import MASK, SecretMask
from rlm.worker.log_lines import configure_logging
from rlm.worker.recent_log import (
    FILE_MAX_BYTES,
    LINE_MAX_BYTES,
    TEXT_MAX_BYTES,
    RecentLog,
    keep_recent_log,
    logged_processes,
    recent_log,
    recent_log_text,
)
from rsm.segment.errors import RetriableError
from rsm.segment.log_line import LogLine

SECRET = 's3cr3t-"\\é'  # noqa: S105 - looked for in the log
NO_SECRETS = SecretMask({})


def _log_of(state_dir: Path, process: str = "manager", mask: SecretMask = NO_SECRETS) -> RecentLog:
    return RecentLog(state_dir / "log" / f"{process}.log", mask)


def _record(message: object) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "rlm.x", "levelname": "INFO", "msg": message})


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which gets its own handlers and level back."""
    found = logging.getLogger()
    handlers, level = found.handlers[:], found.level
    found.handlers.clear()
    yield found
    for handler in found.handlers:
        handler.close()
    found.handlers[:] = handlers
    found.setLevel(level)


@pytest.mark.parametrize(
    "message",
    [
        f"connecting with {SECRET}",
        LogLine("connecting", password=SECRET),
        LogLine("connecting", settings={"password": SECRET}),
        LogLine("connecting", body=json.dumps({"password": SECRET})),
    ],
    ids=["text", "field", "repr-in-field", "json-in-field"],
)
def test_log_when_a_line_has_a_secret_then_its_file_has_a_mask(
    tmp_path: Path, message: object
) -> None:
    mask = SecretMask({"client.sasl.password": SECRET})
    with closing(_log_of(tmp_path, mask=mask)) as log:
        log.handle(_record(message))

    found = recent_log(tmp_path, "manager").decode()
    assert MASK in found
    assert "s3cr3t" not in found
    assert found.count("\n") == 1


def test_log_when_a_secret_is_where_the_line_is_cut_then_no_part_of_it_is_left(
    tmp_path: Path,
) -> None:
    mask = SecretMask({"client.sasl.password": "s3cr3t-value"})
    with closing(_log_of(tmp_path, mask=mask)) as log:
        for length in range(LINE_MAX_BYTES - 60, LINE_MAX_BYTES - 30):
            log.handle(_record("x" * length + "s3cr3t-value"))

    assert b"s3c" not in recent_log(tmp_path, "manager")


def test_log_when_it_grows_then_the_last_lines_are_kept_within_two_files(tmp_path: Path) -> None:
    line_count = 5 * FILE_MAX_BYTES // 1000
    with closing(_log_of(tmp_path)) as log:
        for number in range(line_count):
            log.handle(_record(f"{number:06} {'x' * 1000}"))

    sizes = {path.name: path.stat().st_size for path in (tmp_path / "log").iterdir()}
    numbers = [int(line.split()[3]) for line in recent_log(tmp_path, "manager").splitlines()]
    assert sizes.keys() == {"manager.log", "manager.log.1"}
    assert max(sizes.values()) <= FILE_MAX_BYTES < sum(sizes.values())
    assert numbers == [*range(numbers[0], line_count)]


def test_log_when_the_process_starts_again_then_it_continues_the_file(tmp_path: Path) -> None:
    for message in ("first", "second"):
        with closing(_log_of(tmp_path)) as log:
            log.handle(_record(message))

    lines = recent_log(tmp_path, "manager").decode().splitlines()
    assert [line.split()[-1] for line in lines] == ["first", "second"]


def test_log_when_the_disk_refuses_then_later_lines_are_kept(tmp_path: Path) -> None:
    obstacle = tmp_path / "log"
    obstacle.write_text("no directory")
    with closing(_log_of(tmp_path)) as log:
        log.handle(_record("lost"))
        obstacle.unlink()
        log.handle(_record("kept"))

    assert recent_log(tmp_path, "manager").decode().split()[-1] == "kept"


def test_logging_when_it_is_configured_again_then_the_recent_log_stays(
    tmp_path: Path, root: logging.Logger
) -> None:
    """A manager reads its configuration file again on SIGHUP."""
    first, second = io.StringIO(), io.StringIO()
    configure_logging("INFO", first)
    keep_recent_log(tmp_path, "manager", NO_SECRETS)
    configure_logging("INFO", second)

    root.info("message")

    assert first.getvalue() == ""
    assert second.getvalue().encode() == recent_log(tmp_path, "manager")


def test_text_when_all_processes_have_logged_much_then_each_has_its_share(tmp_path: Path) -> None:
    names = ("gateway", "manager", "supervisor")
    for name in names:
        with closing(_log_of(tmp_path, name)) as log:
            for number in range(TEXT_MAX_BYTES // 1000):
                log.handle(_record(f"{name} {number:06} {'x' * 1000}"))

    text = recent_log_text(tmp_path)

    lines = text.decode().splitlines()
    heads = [f"==> {name}.log <==" for name in names]
    assert logged_processes(tmp_path) == names
    assert TEXT_MAX_BYTES * 0.98 < len(text) <= TEXT_MAX_BYTES
    assert [line for line in lines if line.startswith("==>")] == heads
    assert [line for line in lines if line not in heads and " INFO rlm.x " not in line] == ["", ""]


def test_log_when_its_file_has_just_become_the_previous_one_then_is_read(tmp_path: Path) -> None:
    """Until it logs the next line, the process has no current file."""
    with closing(_log_of(tmp_path)) as log:
        log.handle(_record("last"))
    newest = tmp_path / "log" / "manager.log"
    newest.rename(newest.with_name("manager.log.1"))

    assert logged_processes(tmp_path) == ("manager",)
    assert recent_log(tmp_path, "manager").decode().split()[-1] == "last"


def test_processes_when_none_has_logged_then_the_error_names_what_has_the_log(
    tmp_path: Path,
) -> None:
    with pytest.raises(RetriableError, match="service manager"):
        logged_processes(tmp_path)


@pytest.mark.parametrize("closed", ["log", "log/manager.log"])
def test_processes_when_their_log_is_closed_to_this_user_then_the_error_says_so(
    closed: str,
) -> None:
    """An earlier version showed it as a process that had logged nothing."""
    user = os.geteuid() or 65534
    with TemporaryDirectory() as name:  # other users can enter it, unlike pytest's own
        state = Path(name)
        state.chmod(0o755)
        with closing(_log_of(state)) as log:
            log.handle(_record("kept"))
        (state / "log").chmod(0o755)
        (state / closed).chmod(0)
        before = os.geteuid()
        os.seteuid(user)
        try:
            with pytest.raises(RetriableError) as caught:
                recent_log_text(state)
        finally:
            os.seteuid(before)
            (state / closed).chmod(0o700)

    error = caught.value
    assert error.context["refused_by"] == str(state / closed)
    assert str(error).startswith("cannot read the recent log: Permission denied (path=")
    assert str(error).endswith("Run the command as the user of `rlm run`.")
