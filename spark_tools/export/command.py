"""Runs `rlm-export`, which exports stored offsets as Parquet unless an earlier run did."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from rsm.program.json_shape import JsonField
from rsm.segment.errors import InvalidConfigError
from spark_tools.cluster_topics import find_partitions
from spark_tools.connection import OPTION_PREFIXES, ClusterConnection
from spark_tools.export.job import (
    Export,
    ExportEvent,
    ExportPlan,
    ExportProgress,
    ExportSettings,
)
from spark_tools.export.skipped import SKIPPED_RANGE, SkipCause, SkippedRange, skipped_json
from spark_tools.export.writing import COLUMNS_OF_PATHS
from spark_tools.invocation.arguments import (
    given_options,
    require_known,
    shared_arguments,
    size_in_bytes,
)
from spark_tools.invocation.ending import (
    JobOutcome,
    counts_shape,
    end_job,
    print_line,
    report_shape,
    run_job,
)
from spark_tools.invocation.parser import JobParser
from spark_tools.reading.options import LATEST_OFFSET, Mode, ReadOptions
from spark_tools.reading.summary import readable_size
from spark_tools.rows.schema import UNREADABLE
from spark_tools.schemas.decoding import resolve
from spark_tools.spark.job_session import job_session, require_reachable

_NAME = "rlm-export"
_DEFAULT_FILE_BYTES = 128 << 20
_COUNTS: Mapping[str, str] = MappingProxyType(
    {
        "ranges": "Exported ranges; absent with `--dry-run`.",
        "records": "Records in the exported ranges; absent with `--dry-run`.",
        "files": "Files of the exported ranges; with `--dry-run`, the number of ranges to export.",
        "bytes": "Stored size of the ranges to export; present only with `--dry-run`.",
        "skipped": "Skipped ranges; with `--dry-run`, ranges that an export would skip.",
        "undecodable": "Exported records that could not be decoded, with `decodeMode` "
        "`permissive`.",
    }
)
REPORT = report_shape(
    "ExportReport",
    counts_shape("ExportCounts", _COUNTS.items()),
    {"skipped": JsonField(SKIPPED_RANGE, "The skipped ranges.", is_list=True)},
)


def main() -> None:
    """Run the console script."""
    arguments = command_parser().parse_args()
    run_job(_NAME, lambda: export(arguments), summary=arguments.summary)


def export(arguments: argparse.Namespace) -> int:
    """Run the export, print the exported and skipped ranges, and return the exit code."""
    options = {**given_options(arguments, os.environ), "subscribe": arguments.topics}
    if "timeoutms" not in map(str.lower, options):
        options["timeoutMs"] = str(arguments.timeout_ms)
    rlm_options = {
        name: value for name, value in options.items() if name.startswith(OPTION_PREFIXES)
    }
    require_known(rlm_options)  # ReadOptions validates the data source's options
    connection = ClusterConnection.of(options)
    read = ReadOptions.of(options)
    # Report a user's mistake before Spark starts.
    _require_exportable(read)
    decoding = resolve(read.decode, read.topics)
    with connection.locating():
        find_partitions(connection.client, read.topics, timeout_ms=read.timeout_ms)
    settings = ExportSettings(
        file_bytes=arguments.file_size, by_date=arguments.partition_by == "date", decoding=decoding
    )
    with job_session(_NAME, jars=arguments.jars) as spark:
        require_reachable(spark, connection.store.settings)
        job = Export(spark, options, arguments.output.rstrip("/"), settings)
        report = RangeReport(arguments)
        if arguments.dry_run:
            report.show_plan(job.plan())
        else:
            for event in job.run():
                report.take(event)
    outcome = report.outcome(is_loss_accepted=read.mode is Mode.PERMISSIVE)
    if outcome is JobOutcome.NOTHING_TO_DO:
        print_line(
            arguments,
            "nothing to export: earlier exports wrote all stored records of the chosen offsets",
        )
    details = {"skipped": [skipped_json(each) for each in report.skipped]}
    return end_job(arguments, _NAME, outcome, report.counts, details)


class RangeReport:
    """Prints and counts the outcomes of the ranges."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._print = partial(print_line, arguments)
        self.counts = Counter[str]()
        self.skipped: list[SkippedRange] = []

    def take(self, event: ExportEvent) -> None:
        if isinstance(event, ExportProgress):
            _print_progress(event)
            if event.undecodable_count:
                self._print(f"records that could not be decoded: {event.undecodable_count}")
                self.counts.update(undecodable=event.undecodable_count)
        elif isinstance(event, SkippedRange):
            self._skip(event)
        else:
            self._print(f"{event.topic}-{event.partition} {event.offsets} {event.records_count}")
            self.counts.update(ranges=1, records=event.records_count, files=len(event.files))

    def show_plan(self, plan: ExportPlan) -> None:
        for each in plan.files:
            tip, size = each.topic_id_partition, readable_size(each.size_bytes)
            self._print(f"would export {tip.topic}-{tip.partition} {each.offsets}, {size}")
            self.counts.update(files=1, bytes=each.size_bytes)
        if plan.files:
            size = readable_size(self.counts["bytes"])
            files = self.counts["files"]
            self._print(f"would export {files} {'range' if files == 1 else 'ranges'}, {size}")
        for skipped in plan.skipped:
            self._skip(skipped)

    def outcome(self, *, is_loss_accepted: bool) -> JobOutcome:
        causes = {each.cause for each in self.skipped}
        if causes - {SkipCause.FAILED.value} and not is_loss_accepted:
            return JobOutcome.DATA_LOSS
        if SkipCause.FAILED.value in causes:
            return JobOutcome.FAILED_WORK
        return JobOutcome.DONE if self.counts else JobOutcome.NOTHING_TO_DO

    def _skip(self, skipped: SkippedRange) -> None:
        self.skipped.append(skipped)
        self.counts.update(skipped=1)
        where = f"{skipped.topic}-{skipped.partition} {skipped.offsets}"
        self._print(f"skipped {where} {skipped.cause}: {skipped.reason}")


def _print_progress(progress: ExportProgress) -> None:
    """Print the progress to standard error, because standard output lists the ranges."""
    if progress.files_left:
        done, total = map(readable_size, (progress.done_bytes, progress.total_bytes))
        sys.stderr.write(
            f"{_NAME}: exported {done} of {total}, files left: {progress.files_left}\n"
        )


def _require_exportable(options: ReadOptions) -> None:
    """Raise InvalidConfigError for options that an export does not support."""
    ending = options.ending
    if LATEST_OFFSET in (ending.default, *ending.named.values()):
        raise InvalidConfigError(
            "cannot export up to `latest`: only stored records can be exported",
            option="endingOffsets",
            found="latest",
            advice="Set endingOffsets to `stored` or to offsets",
        )
    if options.mode is Mode.DROPMALFORMED:
        raise InvalidConfigError(
            "cannot export in this mode: it does not report the ranges that it omits",
            option="mode",
            found=options.mode.value,
            advice=f"Use {Mode.FAILFAST.value} or {Mode.PERMISSIVE.value}",
        )
    if not set(options.columns) - {*COLUMNS_OF_PATHS, UNREADABLE}:
        raise InvalidConfigError(
            "cannot export only these columns: the files do not contain them",
            option="columns",
            found=",".join(options.columns),
            expected="at least one other column",
        )
    for name, bound_ms in (
        ("fromTimestamp", options.from_ms),
        ("untilTimestamp", options.until_ms),
    ):
        if bound_ms is not None:
            raise InvalidConfigError(
                "cannot select records by timestamp: an export writes whole ranges of offsets",
                option=name,
                found=bound_ms,
                advice="Use startingOffsets and endingOffsets",
            )


def command_parser() -> JobParser:
    """Return the parser of the command line."""
    parser = shared_arguments(
        _NAME,
        "Write stored segments of topics as Parquet files.",
        example="rlm-export --config rlm.properties orders s3a://lake/kafka",
        operands=" TOPICS DIR",
    )
    parser.add_argument(
        "topics", metavar="TOPICS", example="orders,payments", help="Topics, comma-separated."
    )
    parser.add_argument(
        "output",
        metavar="DIR",
        example="s3a://lake/kafka",
        help="Directory for the files and the manifest.",
    )
    parser.add_argument(
        "--file-size",
        example="512MiB",
        metavar="SIZE",
        type=size_in_bytes,
        default=_DEFAULT_FILE_BYTES,
        help="Approximate maximum of stored bytes per file: raise it for fewer files, lower it for"
        " shorter tasks."
        " [default: 128MiB]",
    )
    parser.add_argument(
        "--partition-by",
        example="date",
        choices=["date"],
        help="Write a directory for each date of the records' timestamps, in UTC.",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="Print the ranges to export; change nothing."
    )
    return parser
