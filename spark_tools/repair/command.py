"""Runs `rlm-repair`, which acts on dead letters about failed deletions and about orphans."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from types import MappingProxyType

from rsm.config.values import require_topic_name
from rsm.program.confirmation import confirm, require_consent
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import TopicIdPartition
from spark_tools.cluster_topics import MissingTopicError, ensure_dead_letter_topic, find_partitions
from spark_tools.connection import DEAD_LETTER_TOPIC, ClusterConnection
from spark_tools.invocation.arguments import (
    add_confirmation,
    count_above_zero,
    duration_in_s,
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
from spark_tools.kafka_connector import PREFIX, connector_options
from spark_tools.record_writer import require_producer
from spark_tools.repair.checkpoint import require_checkpoint_of
from spark_tools.repair.job import DEFAULT_BATCH_DEAD_LETTER_COUNT, RepairJob, RepairSettings
from spark_tools.repair.outcomes import OUTCOME_MEANINGS, RepairOutcome
from spark_tools.snapshot import open_snapshot
from spark_tools.spark.job_session import (
    job_session,
    require_connector,
    require_connector_jar,
    require_reachable,
)

_NAME = "rlm-repair"
_FAILED = (
    RepairOutcome.FAILED,
    RepairOutcome.GIVEN_UP,
    RepairOutcome.REFUSED,
    RepairOutcome.UNREADABLE,
)
_REHEARSED: Mapping[str, str] = MappingProxyType(
    {
        RepairOutcome.REPAIRED: "would repair",
        RepairOutcome.WAITING: "would wait",
        RepairOutcome.REFUSED: "would refuse",
        RepairOutcome.UNREADABLE: "would park as unreadable",
        RepairOutcome.SUPERSEDED: "would skip as superseded",
    }
)
REPORT = report_shape("RepairReport", counts_shape("RepairCounts", OUTCOME_MEANINGS.items()))


def main() -> None:
    """Run the console script."""
    arguments = command_parser().parse_args()
    run_job(_NAME, lambda: repair(arguments), summary=arguments.summary)


def repair(arguments: argparse.Namespace) -> int:
    """Run the job, print the outcomes of the dead letters, and return the exit code."""
    _require_arguments(arguments)
    require_consent(yes=arguments.yes, dry_run=arguments.dry_run)
    options = given_options(arguments, os.environ)
    require_known(options, passed_on=(PREFIX,))
    connection = ClusterConnection.of(options)
    parking_topic = _parking_topic(connection, arguments)
    with connection.locating():
        require_producer(connection.client)
    timeout_ms = arguments.timeout_ms
    dead_letter_topic = connection.dead_letter_topic
    partitions = _dead_letter_partitions(connection, arguments)
    if not partitions:
        print_line(arguments, f"nothing to repair: there is no topic {dead_letter_topic} yet")
        return end_job(arguments, _NAME, JobOutcome.NOTHING_TO_DO, {})
    question = f"Delete the objects that the dead letters of {dead_letter_topic} name?"
    confirm(question, yes=arguments.yes or arguments.dry_run)
    require_connector_jar(arguments.jars)
    connection.store.require_own_manager()
    settings = RepairSettings(
        dead_letter_topic=dead_letter_topic,
        parking_topic=parking_topic,
        checkpoint=arguments.checkpoint or "",
        interval_s=arguments.interval,
        batch_dead_letter_count=arguments.batch,
        max_attempts=arguments.max_attempts,
        orphan_grace_ms=connection.orphan_grace_ms,
        report=arguments.report,
    )
    passed = {key: v for key, v in connection.values.items() if key.startswith(PREFIX)}
    kafka = connector_options(connection.client, passed)
    with (
        job_session(_NAME, jars=arguments.jars) as spark,
        open_snapshot(connection, timeout_ms=timeout_ms) as metadata,
    ):
        require_reachable(spark, connection.store.settings)
        require_connector(spark)
        job = RepairJob(spark, connection, settings, kafka, metadata)
        if arguments.dry_run:
            job.rehearse()
        else:
            topic_id = partitions[0].topic_id
            require_checkpoint_of(spark, settings.checkpoint, dead_letter_topic, topic_id)
            ensure_dead_letter_topic(
                connection.client,
                settings.parking_topic,
                partition_count=len(partitions),
                replicated_as=connection.metadata_topic,
                timeout_ms=timeout_ms,
            )
            job.run()
    for outcome, count in sorted(job.outcomes.items()):
        name = _REHEARSED.get(outcome, outcome) if arguments.dry_run else outcome
        print_line(arguments, f"{name} {count}")
    if not job.outcomes:
        print_line(arguments, "nothing to repair: there are no new dead letters")
    return end_job(arguments, _NAME, _outcome(job.outcomes), job.outcomes)


def _outcome(counts: Mapping[str, int]) -> JobOutcome:
    if any(counts.get(failed) for failed in _FAILED):
        return JobOutcome.FAILED_WORK
    return JobOutcome.DONE if counts else JobOutcome.NOTHING_TO_DO


def _require_arguments(arguments: argparse.Namespace) -> None:
    """Raise InvalidConfigError for a missing option, and for an option that has no effect."""
    if not arguments.dry_run and arguments.checkpoint is None:
        raise InvalidConfigError(
            "cannot repair: --checkpoint is missing",
            advice="Give --checkpoint DIR, or look with --dry-run",
        )
    if arguments.dry_run:
        for option in ("--interval", "--report"):
            if vars(arguments)[option.removeprefix("--")] is not None:
                raise InvalidConfigError(
                    f"{option} has no effect with --dry-run",
                    advice=f"Omit {option} or --dry-run",
                )


def _parking_topic(connection: ClusterConnection, arguments: argparse.Namespace) -> str:
    """Return the name of the parking topic.

    Raises InvalidConfigError unless the names of the parking topic, the dead-letter topic and the
    metadata topic differ.
    """
    dead_letter_topic, metadata_topic = connection.dead_letter_topic, connection.metadata_topic
    parking_topic: str = arguments.parking_topic or f"{dead_letter_topic}.parked"
    if dead_letter_topic == metadata_topic:
        raise connection.invalid(
            "the dead-letter topic is invalid: it is the metadata topic",
            DEAD_LETTER_TOPIC,
            found=dead_letter_topic,
            advice="Name another topic",
        )
    if parking_topic in (dead_letter_topic, metadata_topic):
        raise InvalidConfigError(
            "the parking topic is invalid: it is the dead-letter topic or the metadata topic",
            option="--parking-topic",
            found=parking_topic,
            advice="Name another topic",
        )
    return require_topic_name(parking_topic)


def _dead_letter_partitions(
    connection: ClusterConnection, arguments: argparse.Namespace
) -> tuple[TopicIdPartition, ...]:
    """Return the dead-letter topic's partitions.

    Returns none if the topic of the default name is missing, unless `--interval` is given.
    """
    topic, timeout_ms = connection.dead_letter_topic, arguments.timeout_ms
    try:
        return find_partitions(connection.client, [topic], timeout_ms=timeout_ms)[topic]
    except MissingTopicError:
        if connection.dead_letter_topic_is_named or arguments.interval is not None:
            raise
        return ()


def command_parser() -> JobParser:
    """Return the parser of the command line."""
    parser = shared_arguments(
        _NAME,
        "Finish failed deletions; delete or quarantine orphans. Data loss: the job deletes the"
        " objects that dead letters name.",
        example="rlm-repair --config rlm.properties --jars spark-jars --dry-run",
    )
    parser.add_argument(
        "--checkpoint",
        example="s3a://lake/repair",
        metavar="DIR",
        help="Directory for the position of the job in the dead-letter topic; required unless"
        " --dry-run is given.",
    )
    add_confirmation(
        parser, dry_run="Print the number of dead letters per expected outcome; change nothing."
    )
    parser.add_argument(
        "--interval",
        example="10m",
        metavar="DURATION",
        type=duration_in_s,
        help="Keep running, and look for dead letters at this interval; in seconds if it has "
        "no unit.",
    )
    parser.add_argument(
        "--parking-topic",
        example="parked",
        metavar="TOPIC",
        help="Topic for dead letters that an operator must check; by default, the dead-letter"
        " topic's name followed by .parked.",
    )
    parser.add_argument(
        "--report",
        example="s3a://lake/outcomes",
        metavar="DIR",
        help="Directory to which the job adds Parquet files with the outcome of each dead letter.",
    )
    parser.add_argument(
        "--batch",
        example="50000",
        metavar="COUNT",
        type=count_above_zero,
        default=DEFAULT_BATCH_DEAD_LETTER_COUNT,
        help="Maximum number of dead letters per batch. Raise it to finish sooner; lower it to use"
        " less memory of the driver. [default: %(default)s]",
    )
    parser.add_argument(
        "--max-attempts",
        example="3",
        metavar="COUNT",
        type=count_above_zero,
        default=10,
        help="Number of failed attempts after which the job parks a dead letter."
        " [default: %(default)s]",
    )
    return parser
