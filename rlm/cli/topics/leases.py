"""`rlm leases`: lists the read leases of tiered topics, and releases those of a holder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

import typer

from rlm.cli.invocation.amounts import iso_time
from rlm.cli.invocation.consent import deletes
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.named_topic import find_tiered
from rlm.cli.invocation.options import (
    AnyPartitionArgument,
    ClusterOptions,
    JsonOption,
    PartitionArgument,
    YesOption,
    with_cluster_options,
)
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.terminal.lines import print_lines
from rlm.status.cluster_status import READ_LEASE
from rlm.status.document_parts import PARTITION
from rlmm.events.policy import topic_policies
from rlmm.events.read_lease import release_read_lease
from rlmm.spi import RemoteLogMetadataManager
from rlmm.state.partition_state import ReadLease
from rsm.program.confirmation import confirm
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.errors import InvalidConfigError, NotFoundError
from rsm.segment.ids import TopicIdPartition, id_to_text

LEASES_DOCUMENT = JsonShape(
    name="ReadLeases",
    meaning="The active read leases; for `rlm leases release`, those to release.",
    fields={
        "leases": JsonField(
            JsonShape(
                name="ReadLease",
                meaning="A right that blocks the expiry of offsets while a job reads them.",
                fields={
                    **PARTITION,
                    "lease_id": JsonField(JsonKind.ID, "The lease's id."),
                    **READ_LEASE.fields,
                },
            ),
            "The leases.",
            is_list=True,
        )
    },
)

_RELEASE_EXAMPLES = """Examples:

\b
  rlm leases release orders:0 --holder 'spark app-20300131-0001' --dry-run
  rlm leases release orders --holder 'spark app-20300131-0001' --yes
"""


def _require_holder(holder: str) -> str:
    if not holder.strip():
        raise InvalidConfigError(
            "the holder is invalid: it is empty",
            option="--holder",
            advice="`rlm leases list` shows the holders",
        )
    return holder


_Holder = Annotated[
    str,
    typer.Option(
        "--holder",
        metavar="H",
        help="The holder, as `rlm leases list` shows it.",
        callback=_require_holder,
    ),
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the leases; release none.")]

PartitionLease = tuple[TopicIdPartition, ReadLease]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    leases = typer.Typer(help="List or release read leases.", no_args_is_help=True)
    leases.callback()(_leases)
    leases.command("list", epilog="Example: rlm leases list orders --json")(_list)
    leases.command("release", epilog=_RELEASE_EXAMPLES)(_release)
    app.add_typer(leases, name="leases")


def _leases() -> None:
    """List or release read leases."""


@with_cluster_options
def _list(
    name: AnyPartitionArgument = None, *, cluster: ClusterOptions, as_json: JsonOption = False
) -> None:
    """List the read leases that block expiry.

    A job that reads stored objects by itself, such as a Spark job, takes leases. Data at or above
    a lease's start offset does not expire until the lease ends.
    """
    named = None if name is None else PartitionName.parse(name)
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        found = active_leases(session.metadata, _partitions(session, named))
    _print(found, as_json=as_json)


@with_cluster_options
@deletes()
def _release(
    name: PartitionArgument,
    *,
    holder: _Holder,
    dry_run: _DryRun = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
    as_json: JsonOption = False,
) -> None:
    """Release the read leases of a holder.

    **Danger:** the data that the holder reads can then expire. A job that still runs fails when its
    data is deleted, unless it renews its lease first. Stop the job before you release its leases.
    Leases that are not renewed end within 24 hours.
    """
    named = PartitionName.parse(name)
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        leases = active_leases(session.metadata, _partitions(session, named))
        found = [each for each in leases if each[1].holder == holder]
        if not found:
            raise NotFoundError(
                "cannot release leases: the holder has no active lease",
                topic=name,
                holder=holder,
                advice="`rlm leases list` shows the holders",
            )
        if not dry_run:
            if not yes:
                for line in lease_lines(found):
                    typer.echo(line, err=True)
            confirm("Release these leases?", yes=yes)
            release_leases(session.metadata, found)
    _print(found, as_json=as_json)


def active_leases(
    metadata: RemoteLogMetadataManager, partitions: Iterable[TopicIdPartition]
) -> list[PartitionLease]:
    """Return the leases that have not expired by the brokers' clock."""
    now_ms = metadata.broker_time_ms()
    return [
        (tip, lease)
        for tip in partitions
        for lease in metadata.partition_state(tip).active_leases(now_ms)
    ]


def release_leases(metadata: RemoteLogMetadataManager, leases: Iterable[PartitionLease]) -> None:
    """End leases before they expire. Raises RetriableError if a record cannot be written."""
    for tip, lease in leases:
        release_read_lease(metadata, tip, lease.lease_id)


def lease_lines(leases: Sequence[PartitionLease]) -> Iterator[str]:
    """Yield two lines for each lease, or one line if there is none."""
    for tip, lease in leases:
        yield f"{tip.topic}:{tip.partition} {lease.offsets} until {iso_time(lease.expires_ms)}"
        yield f"  holder: {lease.holder}"
    if not leases:
        yield "no read leases"


def lease_as_json(tip: TopicIdPartition, lease: ReadLease) -> Mapping[str, object]:
    """Return a lease as a ReadLease document."""
    return {
        "topic": tip.topic,
        "topic_id": id_to_text(tip.topic_id),
        "partition": tip.partition,
        "lease_id": id_to_text(lease.lease_id),
        "holder": lease.holder,
        "start_offset": lease.offsets.start_offset,
        "end_offset": lease.offsets.end_offset,
        "expires_ms": lease.expires_ms,
    }


def _partitions(session: CommandSession, named: PartitionName | None) -> Iterator[TopicIdPartition]:
    if named is not None:
        yield from find_tiered(session, named)[1]
        return
    for policy in sorted(topic_policies(session.metadata), key=lambda each: each.topic):
        yield from session.metadata.partitions_of(policy.topic_id, policy.topic)


def _print(leases: Sequence[PartitionLease], *, as_json: bool) -> None:
    with printing():
        if as_json:
            document = {"leases": [lease_as_json(*each) for each in leases]}
            typer.echo(json.dumps(document, indent=2))
        else:
            print_lines(lease_lines(leases))
