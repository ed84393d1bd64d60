"""Reads a metadata topic for a command, and decodes the records of Kafka's own topic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeVar

import typer

from rlm.cli.invocation.log_bounds import optional_topic_name
from rlm.cli.invocation.options import reaching_cluster
from rlm.config.load import CommandConfig
from rlm.worker.cluster_access import client_properties
from rlm.worker.log_lines import configure_command_logging
from rlmm.native.audit import NativePosition
from rlmm.native.records import NATIVE_TOPIC, NativeRecord, decode_native, topic_of_native
from rlmm.positions import MetadataPosition, ReadPosition, TopicRecord
from rlmm.topic.kafka_reader import KafkaTopicReader
from rsm.segment.errors import CorruptError, RetriableError, UnsupportedError

POLL_MS = 500
MAX_RECORDS = 1_000

TopicOption = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Only records about this topic; by default all.",
        callback=optional_topic_name,
    ),
]
PositionedNative = tuple[NativePosition, NativeRecord | None]
"""A position in Kafka's own topic, and the record there; None for a tombstone."""

T = TypeVar("T")


@contextmanager
def open_reader(settings: CommandConfig, *, native: bool) -> Iterator[KafkaTopicReader]:
    """Open a reader of the metadata topic, or of Kafka's own if `native`; close it at the end."""
    configure_command_logging(sys.stderr)
    name = NATIVE_TOPIC if native else settings.metadata.topic_name
    reader = KafkaTopicReader(client_properties(settings.cluster), name)
    try:
        yield reader
    finally:
        reader.close()


def current_ends(
    settings: CommandConfig, reader: KafkaTopicReader, timeout_ms: int
) -> Mapping[int, int]:
    """Return the current end offset of each partition of the topic.

    Raises NotFoundError if the topic does not exist, and InvalidConfigError if the cluster cannot
    be reached.
    """
    with reaching_cluster(settings):
        return reader.end_offsets(reader.partitions(timeout_ms), timeout_ms)


def polled_until(
    ends: Mapping[int, int], reader: KafkaTopicReader, poll: Callable[[], T], timeout_ms: int
) -> Iterator[T]:
    """Yield the result of each `poll` until the reader reaches `ends`.

    Raises RetriableError if the reader does not advance for `timeout_ms`.
    """
    silent_ms = 0
    while any(reader.positions()[partition] < end for partition, end in ends.items()):
        before = reader.positions()
        yield poll()
        silent_ms = 0 if reader.positions() != before else silent_ms + POLL_MS
        if silent_ms >= timeout_ms:
            raise RetriableError(
                "cannot read the topic to its end: the brokers return no further records",
                positions=before,
                advice="Run the command again",
            )


def native_poll(
    reader: KafkaTopicReader, positions: Mapping[int, int], topic: str | None
) -> Callable[[], Iterator[PositionedNative]]:
    """Return a function that polls Kafka's own topic, starting at `positions`.

    The function returns all records, or those about `topic` if given. It skips unreadable records,
    and prints why.
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
    """Print that a record was skipped."""
    typer.echo(f"rlm: skipped record {position.partition}:{position.offset}: {error}", err=True)
