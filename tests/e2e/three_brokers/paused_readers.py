"""Readers that pause within stored data while something happens to the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.clients.reader_contract import ReadRequest
from tests.clients.reader_programs import READERS, RunningReader, reading
from tests.e2e.three_brokers.written_topic import WrittenTopic

# so small that a paused reader has not fetched most of each partition
_FETCH_BYTES = 64 << 10
_READ_BEFORE_PAUSE = 30


@contextmanager
def paused_readers(
    bootstrap_servers: str,
    topic: WrittenTopic,
    directory: Path,
    *,
    readers: tuple[str, ...] = READERS,
    start: str = "earliest",
    rack: str = "",
) -> Iterator[list[RunningReader]]:
    """Run one reader of each library until the block ends; yield them paused."""
    request = ReadRequest(
        bootstrap=bootstrap_servers,
        topic=topic.name,
        start=start,
        pause=_READ_BEFORE_PAUSE,
        fetch_bytes=_FETCH_BYTES,
        rack=rack,
    )
    with ExitStack() as stack:
        running = [
            stack.enter_context(reading(each, request, directory / f"{each}.log"))
            for each in readers
        ]
        for each in running:
            each.wait_paused()
        yield running


def assert_read_all(
    readers: list[RunningReader], topic: WrittenTopic, starts: dict[int, int] | None = None
) -> None:
    """Let the readers continue; each must read every record once, in order."""
    for each in readers:
        each.resume()
    for each in readers:
        found, expected = each.reads(), topic.expected(starts)
        printed = each.printed()
        assert found == expected, f"{each.reader}: {found} instead of {expected}; {printed}"
