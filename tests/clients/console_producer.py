"""Kafka's console producer, whose records a test sends one by one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.kafka_runtime import java_command

_CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
_END_S = 30.0


class ConsoleProducer:
    """A running console producer, made by `console_producer`. Not thread-safe."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def send(self, key: str, value: str) -> None:
        """Have it produce a record. Returns before brokers have the record."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{key}:{value}\n".encode())
        self._process.stdin.flush()


@contextmanager
def console_producer(
    bootstrap_servers: str, topic: str, output: Path, **properties: str
) -> Iterator[ConsoleProducer]:
    """Run a producer that retries without limit. Names of `properties` have `_` for dots."""
    settings = [
        argument
        for name, value in properties.items()
        for argument in ("--command-property", f"{name.replace('_', '.')}={value}")
    ]
    command = java_command(
        _CONSOLE_PRODUCER,
        *("--bootstrap-server", bootstrap_servers, "--topic", topic),
        *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        *("--message-send-max-retries", "1000000"),
        *settings,
    )
    with (
        output.open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log) as process,
    ):
        try:
            yield ConsoleProducer(process)
        except BaseException:
            process.kill()
            raise
        process.communicate(timeout=_END_S)
