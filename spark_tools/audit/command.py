"""`rlm-audit`: compare the store with the metadata and say what differs. Deletes nothing."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rsm.system_clock import SystemClock
from spark_tools.audit.findings import FINDINGS_DDL, finding_rows
from spark_tools.audit.job import Audit, AuditResult, AuditSettings, IncompleteError
from spark_tools.audit.page import report_page
from spark_tools.command_line import given_options, run_job, shared_arguments
from spark_tools.connection import Connection
from spark_tools.job_session import job_session, require_reachable
from spark_tools.snapshot import open_snapshot

_NAME = "rlm-audit"
_INCOMPLETE = 3


def main() -> None:
    """The console script."""
    run_job(_NAME, lambda: audit(command_parser().parse_args()))


def audit(arguments: argparse.Namespace) -> int:
    """Run the audit as the command line says and print what was found; the exit code."""
    connection = Connection.of(given_options(arguments))
    grace_ms = arguments.grace_ms
    if grace_ms is None:
        grace_ms = int(connection.values.get("remote.orphan.grace.ms", "86400000"))
    settings = AuditSettings(
        grace_ms=grace_ms,
        objects_per_range=arguments.objects_per_task,
        verify_checksums=arguments.verify_checksums,
    )
    open_metadata = partial(open_snapshot, connection, timeout_ms=arguments.timeout * 1000)
    with open_metadata():
        pass  # a wrong address is told before Spark starts
    with job_session(_NAME, jars=arguments.jars) as spark:
        require_reachable(spark, connection.store.settings)
        job = Audit(spark, connection.store, open_metadata, settings)
        try:
            result = job.run(SystemClock().wall_ms())
        except IncompleteError as error:
            sys.stderr.write(f"{_NAME}: {' '.join(str(error).split())[:2000]}\n")
            return _INCOMPLETE
        if arguments.output is not None:
            rows = finding_rows(result.findings).to_pylist()
            frame = spark.createDataFrame(rows, FINDINGS_DDL)
            frame.coalesce(1).write.mode("overwrite").parquet(f"{arguments.output}/findings")
    if arguments.page is not None:
        Path(arguments.page).write_text(_page(result, arguments.price), encoding="utf-8")
    for kind, count in sorted(Counter(each.kind for each in result.findings).items()):
        sys.stdout.write(f"{kind} {count}\n")
    return 0


def _page(result: AuditResult, price: float | None) -> str:
    return report_page(
        totals=result.totals,
        findings=result.findings,
        positions=result.positions,
        price_per_gib_month=price,
        made_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
    )


def command_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = shared_arguments(_NAME, "Compare the store with the metadata; nothing is changed.")
    parser.add_argument("--output", metavar="DIR", help="write the findings there as Parquet")
    parser.add_argument("--page", metavar="FILE", help="write a page of HTML about it all")
    parser.add_argument(
        "--price", metavar="PRICE", type=float, help="of a GiB a month, for the page's costs"
    )
    parser.add_argument(
        "--grace-ms",
        metavar="MS",
        type=int,
        help="what is younger is not judged (default: remote.orphan.grace.ms)",
    )
    parser.add_argument(
        "--verify-checksums", action="store_true", help="read every object of finished segments"
    )
    parser.add_argument(
        "--objects-per-task", metavar="COUNT", type=int, default=20_000, help="listed by one task"
    )
    return parser
