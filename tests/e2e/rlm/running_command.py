"""Runs `rlm run` or `rlm gateway` as a process, without a broker."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.waiting import wait_until

META_PROPERTIES = "version=1\ncluster.id=5L6g3nShT-eMCtK--X86sw\nnode.id=1\n"


class RunningCommand:
    """A running command, its configuration file and its log."""

    def __init__(self, process: subprocess.Popen[bytes], config: Path, log: Path) -> None:
        self.process = process
        self.config = config
        self._log = log

    def lines(self) -> list[str]:
        return self._log.read_text().splitlines()

    def reload(self, old: str, new: str) -> None:
        self.config.write_text(self.config.read_text().replace(old, new))
        self.process.send_signal(signal.SIGHUP)

    def await_lines(self, text: str, count: int) -> None:
        wait_until(
            lambda: sum(text in line for line in self.lines()) >= count,
            deadline_s=60.0,
            describe=lambda: f"{count} lines with {text!r} in {self.lines()}",
        )


@contextmanager
def running(command: str, directory: Path, *settings: str) -> Iterator[RunningCommand]:
    store = directory / "store"
    store.mkdir()
    config, log = directory / "rlm.properties", directory / "log"
    keys = (
        "bootstrap.servers=127.0.0.1:1",
        f"state.dir={directory / 'state'}",
        "rsm.config.storage.backend=filesystem",
        f"rsm.config.storage.filesystem.root={store}",
        "logging.level=INFO",
        *settings,
    )
    config.write_text("\n".join(keys) + "\n")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rlm", command, "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    with process:
        try:
            yield RunningCommand(process, config, log)
        finally:
            process.terminate()
