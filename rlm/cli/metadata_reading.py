"""Reading a metadata topic for a command: opened, up to its end of now, Kafka's own decoded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import typer

from rlm.cli.options import reaching_cluster
from rlm.config.load import CommandConfig
from rlm.log_lines import configure_command_logging
from rlm.outside import client_properties
from rlmm.native import NATIVE_TOPIC, NativeRecord, decode_native
from rlmm.positions import TopicRecord
from rlmm.topic.kafka_reader import KafkaTopicReader
from rsm.segment.errors import CorruptError, RetriableError, UnsupportedError

POLL_MS = 500
MAX_RECORDS = 1_000

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


def decoded_natives(
    records: Sequence[TopicRecord],
) -> Iterator[tuple[TopicRecord, NativeRecord | None]]:
    """Records of Kafka's own topic, None without a value; of those left out it says so."""
    for record in records:
        try:
            yield record, None if record.value is None else decode_native(record.value)
        except (CorruptError, UnsupportedError) as error:
            say_skipped(record, error)


def say_skipped(record: TopicRecord, error: Exception) -> None:
    """Tell the user of a record that is left out."""
    typer.echo(f"rlm: record skipped at {record.partition}:{record.offset}: {error}", err=True)
