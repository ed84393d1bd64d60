"""`rlm metadata audit-native`: what is not in order in the metadata of Kafka's own tiering."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from rlm.cli.metadata_lines import human_line, json_line, native_finding_document
from rlm.cli.metadata_reading import (
    MAX_RECORDS,
    POLL_MS,
    decoded_natives,
    ends_of_now,
    open_reader,
    polled_until,
    say_skipped,
)
from rlm.cli.options import ClusterOptions, JsonOption, with_cluster_options
from rlm.cli.output import printing
from rlmm.native import NativeRecord, topic_of_native
from rlmm.native_audit import NativeAudit, NativePlace
from rlmm.positions import ReadPosition, TopicRecord
from rlmm.spi import MetadataPosition
from rsm.segment.errors import CorruptError
from rsm.system_clock import SystemClock

_DAY_MS = 86_400_000

_TopicOption = Annotated[
    str | None, typer.Option("--topic", metavar="TOPIC", help="Only what concerns this topic.")
]
_GraceOption = Annotated[
    int, typer.Option("--grace-ms", min=0, metavar="MS", help="What is younger is not judged.")
]


@with_cluster_options
def audit_native(
    *,
    topic: _TopicOption = None,
    grace_ms: _GraceOption = _DAY_MS,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Look through the metadata of Kafka's own tiered storage for what is not in order.

    Copies and deletions that were begun and never ended, gaps between what is stored, and segments
    of which the beginning is missing. The store is not looked at, and nothing is changed.
    """
    audit = NativeAudit()
    _read_all(audit, topic, cluster)
    findings = list(audit.findings(SystemClock().wall_ms() - grace_ms))
    line = json_line if as_json else human_line
    with printing():
        for finding in findings:
            sys.stdout.write(line(native_finding_document(finding)) + "\n")
    counts = f"segments looked at: {audit.segments_count()}, findings: {len(findings)}"
    typer.echo(f"rlm: {counts}", err=True)


def _read_all(audit: NativeAudit, topic: str | None, cluster: ClusterOptions) -> None:
    with open_reader(cluster.config, native=True) as reader:
        ends = ends_of_now(cluster.config, reader, cluster.timeout_ms)
        reader.assign({partition: ReadPosition(offset=0) for partition in ends})

        def poll() -> Sequence[TopicRecord]:
            return reader.poll(max_records=MAX_RECORDS, timeout_ms=POLL_MS)

        for records in polled_until(ends, reader, poll, cluster.timeout_ms):
            for record, native in decoded_natives(records):
                if native is not None and topic in (None, topic_of_native(native)):
                    _add(audit, record, native)


def _add(audit: NativeAudit, record: TopicRecord, native: NativeRecord) -> None:
    position = MetadataPosition(partition=record.partition, offset=record.offset)
    try:
        audit.add(native, NativePlace(position=position, append_time_ms=record.append_time_ms))
    except CorruptError as error:
        say_skipped(record, error)
