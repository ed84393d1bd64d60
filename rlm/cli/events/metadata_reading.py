"""Reading a metadata topic for a command: opened, up to its end of now, Kafka's own decoded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeVar

import typer

from rlm.cli.invocation.options import reaching_cluster
from rlm.config.load import CommandConfig
from rlm.worker.external import client_properties
from rlm.worker.log_lines import configure_command_logging
from rlmm.native.audit import NativePosition
from rlmm.native.records import NATIVE_TOPIC, NativeRecord, decode_native, topic_of_native
from rlmm.positions import ReadPosition, TopicRecord
from rlmm.spi import MetadataPosition
from rlmm.topic.kafka_reader import KafkaTopicReader
from rsm.segment.errors import CorruptError, RetriableError, UnsupportedError

POLL_MS = 500
MAX_RECORDS = 1_000

TopicOption = Annotated[
    str | None, typer.Option("--topic", metavar="TOPIC", help="Only what concerns this topic.")
]
PositionedNative = tuple[NativePosition, NativeRecord | None]
"""A record of Kafka's own, None without a value, and where it stands."""

T = TypeVar("T")


@contextmanager
def open_reader(settings: CommandConfig, *, native: bool) -> Iterator[KafkaTopicReader]:
    """Reads the metadata topic, or Kafka's own."""
    configure_command_logging(sys.stderr)
    name = NATIVE_TOPIC if native else settings.metadata.topic_name
    reader = KafkaTopicReader(client_properties(settings.cluster), name)
    try:
        yield reader
    finally:
        reader.close()


def ends_of_now(
    settings: CommandConfig, reader: KafkaTopicReader, timeout_ms: int
) -> Mapping[int, int]:
    """The end of each partition. NotFoundError, RetriableError, InvalidConfigError."""
    with reaching_cluster(settings):
        return reader.end_offsets(reader.partitions(timeout_ms), timeout_ms)


def polled_until(
    ends: Mapping[int, int], reader: KafkaTopicReader, poll: Callable[[], T], timeout_ms: int
) -> Iterator[T]:
    """What each `poll` of the reader gives, until it is at `ends`.

    RetriableError if nothing comes for `timeout_ms`.
    """
    silent_ms = 0
    while any(reader.positions()[partition] < end for partition, end in ends.items()):
        before = reader.positions()
        yield poll()
        silent_ms = 0 if reader.positions() != before else silent_ms + POLL_MS
        if silent_ms >= timeout_ms:
            raise RetriableError("the broker sends nothing", positions=before)


def native_poll(
    reader: KafkaTopicReader, positions: Mapping[int, int], topic: str | None
) -> Callable[[], Iterator[PositionedNative]]:
    """What polls a reader of Kafka's own topic, from there on.

    All records, or those that concern `topic`; of what is left out unread it tells the user.
    """
    reader.assign({p: ReadPosition(offset=offset) for p, offset in positions.items()})
    return lambda: _natives(reader.poll(max_records=MAX_RECORDS, timeout_ms=POLL_MS), topic)


def _natives(records: Sequence[TopicRecord], topic: str | None) -> Iterator[PositionedNative]:
    for record in records:
        position = MetadataPosition(partition=record.partition, offset=record.offset)
        try:
            native = None if record.value is None else decode_native(record.value)
        except (CorruptError, UnsupportedError) as error:
            say_skipped(position, error)
            continue
        if topic is None or (native is not None and topic_of_native(native) == topic):
            yield NativePosition(position=position, append_time_ms=record.append_time_ms), native


def say_skipped(position: MetadataPosition, error: Exception) -> None:
    """Tell the user of a record that is left out."""
    typer.echo(f"rlm: record skipped at {position.partition}:{position.offset}: {error}", err=True)
