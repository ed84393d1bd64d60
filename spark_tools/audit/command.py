"""Runs `rlm-audit`, which compares the store with the metadata and reports the differences.

It deletes nothing. On request it writes dead letters for `rlm-repair`, which checks each orphan
again.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

from rlmm.cache.rocksdb_copy import require_cache
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment, encode
from rsm.program.confirmation import confirm, require_consent
from rsm.program.json_shape import JsonField
from rsm.segment.errors import InvalidConfigError
from rsm.system_clock import SystemClock
from spark_tools.audit.findings import (
    DATA_LOSS,
    FINDING_MEANINGS,
    FINDINGS_DDL,
    Finding,
    finding_rows,
)
from spark_tools.audit.job import Audit, AuditResult, AuditSettings, IncompleteError, open_metadata
from spark_tools.audit.orphan_dead_letters import TREATED_ORPHANS, orphan_dead_letters, treated_json
from spark_tools.audit.page.facts import AuditFacts
from spark_tools.audit.page.readable import Price
from spark_tools.audit.page.report import report_page
from spark_tools.cluster_topics import ensure_dead_letter_topic, find_partitions
from spark_tools.connection import CONFIG, ClusterConnection
from spark_tools.invocation.arguments import (
    add_confirmation,
    count_above_zero,
    duration_in_ms,
    given_options,
    require_known,
    shared_arguments,
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
from spark_tools.record_writer import OutgoingRecord, write_records
from spark_tools.spark.job_session import job_session, require_reachable, require_writable
from spark_tools.store_url import without_secrets

_NAME = "rlm-audit"
_DEAD_LETTER_PARTITIONS = 10
_CURRENCY = "USD"
REPORT = report_shape(
    "AuditReport",
    counts_shape("AuditCounts", ((kind.value, text) for kind, text in FINDING_MEANINGS.items())),
    {
        "orphans": JsonField(
            TREATED_ORPHANS,
            "The request to `rlm-repair`. Present only with `--delete` or `--quarantine`.",
            is_optional=True,
        )
    },
)


def main() -> None:
    """Run the console script."""
    arguments = command_parser().parse_args()
    run_job(_NAME, lambda: audit(arguments), summary=arguments.summary)


def audit(arguments: argparse.Namespace) -> int:
    """Run the audit, print the number of findings of each kind, and return the exit code."""
    _require_that_none_is_idle(arguments)
    _require_consent(arguments)
    options = given_options(arguments, os.environ)
    require_known(options)
    connection = ClusterConnection.of(options)
    grace_ms = arguments.grace_ms
    settings = AuditSettings(
        grace_ms=connection.orphan_grace_ms if grace_ms is None else grace_ms,
        objects_per_range=arguments.objects_per_task,
        verify_checksums=arguments.verify_checksums,
    )
    timeout_ms = arguments.timeout_ms
    # Report a user's mistake before Spark starts.
    if arguments.metadata_cache is not None:
        require_cache(arguments.metadata_cache)
    if arguments.page is not None:
        _require_file_may_be(Path(arguments.page))
    connection.store.require_own_manager()
    connection.store.require_listing()
    with connection.locating():
        find_partitions(connection.client, [connection.metadata_topic], timeout_ms=timeout_ms)
    open_it = partial(
        open_metadata, connection, timeout_ms=timeout_ms, cache=arguments.metadata_cache
    )
    with job_session(_NAME, jars=arguments.jars) as spark:
        require_reachable(spark, connection.store.settings)
        if arguments.output is not None:
            require_writable(spark, arguments.output)
        job = Audit(spark, connection.store, open_it, settings, SystemClock())
        try:
            result = job.run()
        except IncompleteError as error:
            sys.stderr.write(f"{_NAME}: {' '.join(str(error).split())}\n")
            return end_job(arguments, _NAME, JobOutcome.UNDECIDED, {})
        # Print the counts first, because writing the files may fail.
        counts = _print_counts(arguments, result.settled.findings)
        if arguments.page is not None:
            Path(arguments.page).write_text(
                _page(result, connection, settings, arguments), encoding="utf-8"
            )
        if arguments.output is not None:
            rows = finding_rows(result.settled.findings).to_pylist()
            frame = spark.createDataFrame(rows, FINDINGS_DDL)
            frame.coalesce(1).write.mode("overwrite").parquet(f"{arguments.output}/findings")
    details = {}
    if arguments.treatment is not None:
        details["orphans"] = _treat(result, connection, arguments)
    is_lost = any(counts[kind.value] for kind in DATA_LOSS)
    outcome = JobOutcome.DATA_LOSS if is_lost else JobOutcome.DONE
    return end_job(arguments, _NAME, outcome, counts, details)


def _print_counts(arguments: argparse.Namespace, findings: Sequence[Finding]) -> Counter[str]:
    """Print and return the number of findings by kind; print advice on a loss to standard error."""
    counts = Counter(each.kind for each in findings)
    for kind, count in sorted(counts.items()):
        print_line(arguments, f"{kind} {count}")
    if not counts:
        print_line(arguments, "nothing was found")
    for line in loss_advice(findings):
        sys.stderr.write(f"{_NAME}: {line}\n")
    return counts


def loss_advice(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield one line about the first loss or damage and its remedy; nothing if there is none."""
    kinds = {kind.value for kind in DATA_LOSS}
    first = next((each for each in findings if each.kind in kinds), None)
    if first is None:
        return
    location = f"{first.topic}:{first.partition}"
    context = {"partition": location, "segment_id": first.segment_id, "object": first.object_key}
    fields = ", ".join(f"{name}={value}" for name, value in context.items() if value)
    yield (
        f"data is lost or damaged: {first.detail} ({fields}). Restore missing or damaged "
        f"objects, or see `rlm topic resolve {location} --dry-run`. --page FILE and --output DIR "
        "list all findings."
    )


def _require_that_none_is_idle(arguments: argparse.Namespace) -> None:
    """Raise InvalidConfigError for an argument that has no effect without another one."""
    if arguments.treatment is None:
        for option, is_given in (("--yes", arguments.yes), ("--dry-run", arguments.dry_run)):
            if is_given:
                raise _idle(option, "--delete or --quarantine")
    if arguments.price is not None and arguments.page is None:
        raise _idle("--price", "--page")
    if arguments.currency is not None and arguments.price is None:
        raise _idle("--currency", "--price")


def _idle(option: str, other: str) -> InvalidConfigError:
    return InvalidConfigError(
        f"{option} has no effect without {other}", advice="Give both or neither"
    )


def _require_consent(arguments: argparse.Namespace) -> None:
    if arguments.treatment is not None:
        require_consent(yes=arguments.yes, dry_run=arguments.dry_run)


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 0 <= price < math.inf:
        raise argparse.ArgumentTypeError(f"not a number of at least 0: {text!r}")
    return price


def _require_file_may_be(path: Path) -> None:
    try:
        with path.open("ab") if path.exists() else TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InvalidConfigError(
            "cannot write the file",
            option="--page",
            found=path,
            reason=error.strerror,
            advice="Check its path and permissions",
        ) from error


def _treat(
    result: AuditResult, connection: ClusterConnection, arguments: argparse.Namespace
) -> dict[str, object]:
    """Write the dead letters for repair after a confirmation; return the counts.

    A dry run does not prompt and writes nothing. Raises StoppedError if the user declines.
    """
    treatment = OrphanTreatment(arguments.treatment)
    dead_letters = orphan_dead_letters(result.settled.orphans, treatment, result.seen)
    counts = treated_json(
        treatment, result.settled.orphans, dead_letters, is_requested=not arguments.dry_run
    )
    about = f"{treatment.value} objects: {counts['objects']} ({counts['bytes']} bytes)"
    about += f"; kept for lack of proof: {counts['kept']}"
    if arguments.dry_run:
        print_line(arguments, f"would {about}")
    else:
        confirm(f"Request rlm-repair to {about}?", yes=arguments.yes)
        _send(dead_letters, connection, timeout_ms=arguments.timeout_ms)
        print_line(arguments, f"requested rlm-repair to {about}")
    return counts


def _send(
    dead_letters: Sequence[OrphanDeadLetter], connection: ClusterConnection, *, timeout_ms: int
) -> None:
    topic = connection.dead_letter_topic
    ensure_dead_letter_topic(
        connection.client,
        topic,
        partition_count=_DEAD_LETTER_PARTITIONS,
        replicated_as=connection.metadata_topic,
        timeout_ms=timeout_ms,
    )
    encoded = map(encode, dead_letters)
    records = (OutgoingRecord(topic=topic, key=each.key, value=each.value) for each in encoded)
    write_records(connection.client, records, timeout_ms=timeout_ms)


def _page(
    result: AuditResult,
    connection: ClusterConnection,
    settings: AuditSettings,
    arguments: argparse.Namespace,
) -> str:
    price, output = arguments.price, arguments.output
    facts = AuditFacts(
        cluster_id=result.seen.topic.cluster_id,
        store=connection.store.url,
        metadata_topic=connection.metadata_topic,
        metadata_positions=result.seen.positions,
        grace_ms=settings.grace_ms,
        checksums_read=settings.verify_checksums,
        started_ms=result.seen.first_ms,
        took_ms=result.took_ms,
        price=None
        if price is None
        else Price(per_gib_month=price, currency=arguments.currency or _CURRENCY),
        config=connection.values.get(CONFIG),
        output=output and (without_secrets(output) or output),
    )
    return report_page(facts, result.settled.totals, result.settled.findings)


def command_parser() -> JobParser:
    """Return the parser of the command line."""
    parser = shared_arguments(
        _NAME,
        "Compare the store with the metadata topic. Deletes nothing.",
        example="rlm-audit --config rlm.properties --output DIR --page audit.html",
    )
    parser.add_argument(
        "--output",
        example="s3a://lake/audit",
        metavar="DIR",
        help="Directory for the findings as Parquet; replaces DIR/findings.",
    )
    _add_page(parser)
    parser.add_argument(
        "--metadata-cache",
        example="/var/lib/rlm/manager/cache",
        metavar="DIR",
        type=Path,
        help="Metadata cache of a process on this host: the audit copies it, and reads only newer"
        " records from the topic.",
    )
    parser.add_argument(
        "--grace-ms",
        "--grace",
        example="2d",
        metavar="DURATION",
        type=duration_in_ms,
        help="Minimum age at which unfinished work and objects without a segment are reported; in"
        " ms if it has no unit."
        " [default: remote.orphan.grace.ms]",
    )
    parser.add_argument(
        "--verify-checksums",
        action="store_true",
        help="Read every object of finished segments and compare its checksum.",
    )
    parser.add_argument(
        "--objects-per-task",
        example="5000",
        metavar="COUNT",
        type=count_above_zero,
        default=20_000,
        help="Expected objects per task. Lower it if tasks lack memory; raise it for fewer tasks."
        " [default: %(default)s]",
    )
    _add_treatment(parser)
    return parser


def _add_page(parser: JobParser) -> None:
    parser.add_argument(
        "--page",
        example="audit.html",
        metavar="FILE",
        help="File for an HTML page with the findings; replaces an existing file.",
    )
    parser.add_argument(
        "--price",
        example="0.023",
        metavar="PRICE",
        type=_price,
        help="Price of storing one GiB for a month, for the costs on the page.",
    )
    parser.add_argument(
        "--currency",
        example="EUR",
        metavar="NAME",
        help=f"Currency of the price. [default: {_CURRENCY}]",
    )


def _add_treatment(parser: JobParser) -> None:
    treatments = parser.add_mutually_exclusive_group()
    for treatment, what in (
        (OrphanTreatment.QUARANTINE, "move orphans to quarantine"),
        (OrphanTreatment.DELETE, "delete orphans, also those in quarantine longer than --grace"),
    ):
        treatments.add_argument(
            f"--{treatment.value}",
            action="store_const",
            const=treatment.value,
            dest="treatment",
            help=f"Data loss: request rlm-repair to {what}. Writes a dead letter for each object.",
        )
    add_confirmation(
        parser,
        dry_run="With --delete or --quarantine: print the number of objects; write no dead letter.",
    )
