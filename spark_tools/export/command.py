"""`rlm-export`: stored segments of topics as Parquet, going on where the last export ended."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from rsm.segment.errors import InvalidConfigError
from spark_tools.command_line import (
    JobOutcome,
    ended,
    given_options,
    require_known,
    run_job,
    shared_arguments,
)
from spark_tools.connection import OPTION_PREFIXES, Connection
from spark_tools.export.job import COLUMNS_OF_PATHS, Export
from spark_tools.job_session import job_session, require_reachable
from spark_tools.reading.options import LATEST_OFFSET, Mode, ReadOptions

_NAME = "rlm-export"


def main() -> None:
    """The console script."""
    arguments = command_parser().parse_args()
    run_job(_NAME, lambda: export(arguments), summary=arguments.summary)


def export(arguments: argparse.Namespace) -> int:
    """Export as the command line says and print what was; the exit code."""
    options = {**given_options(arguments), "subscribe": arguments.topics}
    if "timeoutms" not in map(str.lower, options):
        options["timeoutMs"] = str(arguments.timeout * 1000)
    ours = {name: value for name, value in options.items() if name.startswith(OPTION_PREFIXES)}
    require_known(ours)  # the others are the data source's
    connection = Connection.of(options)
    _require_exportable(ReadOptions.of(options))  # told before Spark starts
    counts = Counter[str]()
    with job_session(_NAME, jars=arguments.jars) as spark:
        require_reachable(spark, connection.store.settings)
        for done in Export(spark, options, arguments.output.rstrip("/")).run():
            offsets = f"[{done.start_offset}, {done.end_offset})"
            sys.stdout.write(f"{done.topic}-{done.partition} {offsets} {done.records_count}\n")
            sys.stdout.flush()
            counts.update(ranges=1, records=done.records_count)
    if not counts:
        sys.stdout.write("nothing to export: all that is stored was exported before\n")
        return ended(arguments, _NAME, JobOutcome.NOTHING_TO_DO, counts)
    return ended(arguments, _NAME, JobOutcome.DONE, counts)


def _require_exportable(options: ReadOptions) -> None:
    """InvalidConfigError for what would leave out records of offsets that are noted as exported."""
    ending = options.ending
    if LATEST_OFFSET in (ending.default, *ending.named.values()):
        raise InvalidConfigError(
            "only what is stored is exported",
            option="endingOffsets",
            found="latest",
            expected="stored, or offsets",
        )
    if options.mode is not Mode.FAILFAST:
        raise InvalidConfigError(
            "what can't be read is not exported",
            option="mode",
            found=options.mode.value,
            expected=Mode.FAILFAST.value,
        )
    if not set(options.columns) - set(COLUMNS_OF_PATHS):
        raise InvalidConfigError(
            "nothing would be exported: these columns are in the files' paths",
            option="columns",
            found=",".join(options.columns),
            expected="one more",
        )
    if options.decode.columns:
        raise InvalidConfigError(
            "keys and values are exported as bytes",
            option=f"{options.decode.columns[0].column}Format",
            found=options.decode.columns[0].format.value,
            expected="binary",
        )
    for name, bound_ms in (
        ("fromTimestamp", options.from_ms),
        ("untilTimestamp", options.until_ms),
    ):
        if bound_ms is not None:
            raise InvalidConfigError(
                "whole ranges of offsets are exported",
                option=name,
                found=bound_ms,
                expected="startingOffsets, endingOffsets",
            )


def command_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = shared_arguments(_NAME, "Write stored segments of topics as Parquet files.")
    parser.add_argument("topics", metavar="TOPICS", help="comma-separated")
    parser.add_argument("output", metavar="DIR", help="where files and manifest are")
    return parser
