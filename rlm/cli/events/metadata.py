"""`rlm metadata`: prints the records of a metadata topic, and audits Kafka's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from rlm.cli.events.metadata_audit import audit_native
from rlm.cli.events.metadata_lines import (
    Document,
    consumed_document,
    human_line,
    json_line,
    native_document,
)
from rlm.cli.events.metadata_reading import (
    MAX_RECORDS,
    POLL_MS,
    TopicOption,
    current_ends,
    native_poll,
    open_reader,
    polled_until,
)
from rlm.cli.invocation.options import ClusterOptions, JsonOption, with_cluster_options
from rlm.cli.invocation.output import printing
from rlmm.consumer import MetadataConsumer
from rlmm.native.records import NATIVE_TOPIC
from rlmm.topic.kafka_reader import KafkaTopicReader

_NativeOption = Annotated[
    bool,
    typer.Option(
        "--native", help=f"Read {NATIVE_TOPIC}, the topic of Kafka's own tiered storage, instead."
    ),
]

_Poll = Callable[[], list[Document]]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(
        help="Print records of a metadata topic, or audit Kafka's own.", no_args_is_help=True
    )
    commands.command("dump", epilog="Example: rlm metadata dump --topic orders --json")(_dump)
    commands.command("tail", epilog="Example: rlm metadata tail --topic orders")(_tail)
    commands.command("audit-native", epilog="Example: rlm metadata audit-native --topic orders")(
        audit_native
    )
    app.add_typer(commands, name="metadata")


@with_cluster_options
def _dump(
    *,
    topic: TopicOption = None,
    native: _NativeOption = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Print all records from the beginning to the current end.

    Also prints tombstones and records that processes refuse. `rlm status` shows the accepted state.
    """
    settings = cluster.config
    timeout_ms = cluster.timeout_ms
    with open_reader(settings, native=native) as reader:
        ends = current_ends(settings, reader, timeout_ms)
        poll = _poll_from(reader, dict.fromkeys(ends, 0), topic, native=native)
        for documents in polled_until(ends, reader, poll, timeout_ms):
            _print(documents, as_json=as_json)


@with_cluster_options
def _tail(
    *,
    topic: TopicOption = None,
    native: _NativeOption = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Print new records until Ctrl-C."""
    settings = cluster.config
    with open_reader(settings, native=native) as reader:
        ends = current_ends(settings, reader, cluster.timeout_ms)
        poll = _poll_from(reader, ends, topic, native=native)
        while True:
            _print(poll(), as_json=as_json)


def _poll_from(
    reader: KafkaTopicReader, positions: Mapping[int, int], topic: str | None, *, native: bool
) -> _Poll:
    """Return a function that reads the next records, starting at `positions`."""
    if native:
        poll_natives = native_poll(reader, positions, topic)
        return lambda: [
            native_document(native_position.position, native_position.append_time_ms, record)
            for native_position, record in poll_natives()
        ]
    consumer = MetadataConsumer(reader, positions, topic=topic)
    return lambda: [
        consumed_document(each)
        for each in consumer.poll(max_records=MAX_RECORDS, timeout_ms=POLL_MS)
    ]


def _print(documents: Sequence[Document], *, as_json: bool) -> None:
    line = json_line if as_json else human_line
    with printing():
        for document in documents:
            sys.stdout.write(line(document) + "\n")
