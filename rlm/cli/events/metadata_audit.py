"""`rlm metadata audit-native`: finds faults in the metadata of Kafka's own tiered storage."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rlm.cli.events.metadata_lines import human_line, json_line, native_finding_document
from rlm.cli.events.metadata_reading import (
    TopicOption,
    current_ends,
    native_poll,
    open_reader,
    polled_until,
    say_skipped,
)
from rlm.cli.invocation.amount_options import durations
from rlm.cli.invocation.options import ClusterOptions, JsonOption, with_cluster_options
from rlm.cli.invocation.output import printing
from rlmm.native.audit import NativeAudit, NativePosition
from rlmm.native.records import NativeRecord
from rsm.segment.errors import CorruptError
from rsm.system_clock import SystemClock

_DAY_MS = 86_400_000

_GraceOption = Annotated[
    int,
    typer.Option(
        "--grace-ms",
        "--grace",
        parser=durations(),
        metavar="DURATION",
        help="Ignore faults with records younger than this; in ms if it has no unit.",
        show_default="1d",
    ),
]


@with_cluster_options
def audit_native(
    *,
    topic: TopicOption = None,
    grace_ms: _GraceOption = _DAY_MS,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Find faults in the metadata of Kafka's own tiered storage.

    Finds copies and deletions that did not end, gaps between stored segments, and segments whose
    first metadata record is missing. Does not read the store, and changes nothing.
    """
    audit = NativeAudit()
    _read_all(audit, topic, cluster)
    findings = list(audit.findings(SystemClock().wall_ms() - grace_ms))
    line = json_line if as_json else human_line
    with printing():
        for finding in findings:
            sys.stdout.write(line(native_finding_document(finding)) + "\n")
    counts = f"segments checked: {audit.segments_count()}, findings: {len(findings)}"
    typer.echo(f"rlm: {counts}", err=True)


def _read_all(audit: NativeAudit, topic: str | None, cluster: ClusterOptions) -> None:
    with open_reader(cluster.config, native=True) as reader:
        ends = current_ends(cluster.config, reader, cluster.timeout_ms)
        poll = native_poll(reader, dict.fromkeys(ends, 0), topic)
        for natives in polled_until(ends, reader, poll, cluster.timeout_ms):
            for native_position, native in natives:
                if native is not None:
                    _add(audit, native, native_position)


def _add(audit: NativeAudit, native: NativeRecord, native_position: NativePosition) -> None:
    try:
        audit.add(native, native_position)
    except CorruptError as error:
        say_skipped(native_position.position, error)
