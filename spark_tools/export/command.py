"""`rlm-export`: stored segments of topics as Parquet, going on where the last export ended."""

from __future__ import annotations

import argparse
import sys

from rsm.segment.errors import InvalidConfigError
from spark_tools.command_line import given_options, run_job, shared_arguments
from spark_tools.connection import Connection
from spark_tools.data_source import register
from spark_tools.export.job import Export
from spark_tools.job_session import job_session, require_reachable
from spark_tools.reading.options import LATEST_OFFSET, ReadOptions

_NAME = "rlm-export"


def main() -> None:
    """The console script."""
    run_job(_NAME, lambda: export(command_parser().parse_args()))


def export(arguments: argparse.Namespace) -> int:
    """Export as the command line says and print what was; the exit code."""
    options = {**given_options(arguments), "subscribe": arguments.topics}
    options.setdefault("timeoutMs", str(arguments.timeout * 1000))
    connection = Connection.of(options)
    # What is wrong there is told before Spark starts.
    if ReadOptions.of(options).ending.default == LATEST_OFFSET:
        raise InvalidConfigError(
            "only what is stored is exported",
            option="endingOffsets",
            found="latest",
            expected="stored, or offsets",
        )
    with job_session(_NAME, jars=arguments.jars) as spark:
        require_reachable(spark, connection.store.settings)
        register(spark)
        for done in Export(spark, options, arguments.output.rstrip("/")).run():
            offsets = f"[{done.start_offset}, {done.end_offset})"
            sys.stdout.write(f"{done.topic}-{done.partition} {offsets} {done.records_count}\n")
    return 0


def command_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = shared_arguments(_NAME, "Write stored segments of topics as Parquet files.")
    parser.add_argument("topics", metavar="TOPICS", help="comma-separated")
    parser.add_argument("output", metavar="DIR", help="where files and manifest are")
    return parser
