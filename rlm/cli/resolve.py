"""`rlm topic resolve`: accept what a topic's partitions have lost, so that things go on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Annotated, NamedTuple
from uuid import uuid4

import typer

from rlm.broker.cluster_offsets import fetch_cluster_offsets
from rlm.cli.log_bounds import PartitionName
from rlm.cli.lost_segment import resolve_lost_segments
from rlm.cli.options import ClusterOptions, JsonOption, reaching_cluster, with_cluster_options
from rlm.cli.output import printing
from rlm.cli.policy_of import find_tiered
from rlm.cli.session import Session, open_session
from rlm.policy.losses import Losses, losses
from rlmm.events import LogStartRequested, LossAccepted
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.ids import TopicIdPartition

_NO_EPOCH = -1
_ASK_THREADS = 8

_Name = Annotated[
    str, typer.Argument(metavar="NAME[:PARTITION]", help="The topic, or one partition of it.")
]


def add_to(topic: typer.Typer) -> None:
    """Add the command."""
    topic.command("resolve", help=_resolve.__doc__)(_resolve)


@with_cluster_options
def _resolve(
    name: _Name,
    *,
    move_log_start: Annotated[
        bool,
        typer.Option(
            "--move-log-start",
            help="Where somebody else moved a broker's log start: let the log begin there, and "
            "delete what is stored below. Without it that stays readable.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what there is to accept.")
    ] = False,
    lost_segment: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="**Data loss:** give up the damaged segment ID of TOPIC:PARTITION. Its records "
            "become a recorded gap, and readers continue after it. Refused while the broker or "
            "another segment has the records. May be repeated: all are given up, or none.",
        ),
    ] = None,
    as_json: JsonOption = False,
    cluster: ClusterOptions,
) -> None:
    """Accept what partitions have lost, after a look at it: `diverged` and `external_start`.

    Trims and deletions begin again; what an election cut off stays stored for
    remote.unreferenced.grace.ms. With --lost-segment only that segment is given up.
    """
    if lost_segment:
        if move_log_start:
            raise InvalidConfigError("--lost-segment and --move-log-start exclude each other")
        resolve_lost_segments(
            PartitionName.parse(name), lost_segment, cluster, dry_run=dry_run, as_json=as_json
        )
        return
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        _, partitions = find_tiered(session, PartitionName.parse(name))
        found = tuple(_found(session, partitions, with_accepted_start=move_log_start))
        if not dry_run:
            for each in found:
                _accept(session.metadata, each, move_log_start=move_log_start)
    with printing():
        if as_json:
            typer.echo(json.dumps([_as_json(each, accepted=not dry_run) for each in found]))
            return
        for each in found:
            for line in _lines(each.topic_id_partition, each.lost):
                typer.echo(line)
        if not found:
            typer.echo("nothing to resolve")


class _Found(NamedTuple):
    """What a partition has lost, as its leader of `leader_epoch` showed it."""

    topic_id_partition: TopicIdPartition
    lost: Losses
    leader_epoch: int


def _found(
    session: Session, partitions: tuple[TopicIdPartition, ...], *, with_accepted_start: bool
) -> Iterator[_Found]:
    with reaching_cluster(session.config):
        view = session.bootstrap.view((partitions[0].topic,))
    with ThreadPoolExecutor(_ASK_THREADS, "resolve") as executor:
        answers = fetch_cluster_offsets(session.bootstrap, view, partitions, executor)
    for error in answers.failed.values():
        raise RetriableError("a leader can't be asked", reason=error) from error
    epochs = {tip: epoch for node_id in view.brokers for tip, epoch in view.led_by(node_id).items()}
    for tip in partitions:
        records = session.metadata.list_remote_log_segments(tip)
        lost = losses(
            session.metadata.partition_state(tip),
            tuple(record.metadata for record in records),
            answers.succeeded[tip].log_start_offset,
            with_accepted_start=with_accepted_start,
        )
        if lost.any_left:
            yield _Found(tip, lost, epochs[tip])


def _accept(metadata: RemoteLogMetadataManager, found: _Found, *, move_log_start: bool) -> None:
    tip, lost, leader_epoch = found
    moved = lost.moved_from_offset is not None
    start_offset = lost.local_start_offset if moved else 0
    metadata.publish(
        LossAccepted(
            event_id=uuid4(),
            topic_id_partition=tip,
            leader_epoch=_NO_EPOCH if lost.cut_off is None else lost.cut_off.leader_epoch,
            local_start_offset=start_offset,
        )
    )
    if moved and move_log_start:
        metadata.publish(
            LogStartRequested(
                event_id=uuid4(),
                topic_id_partition=tip,
                offset=start_offset,
                leader_epoch=leader_epoch,
            )
        )


def _as_json(found: _Found, *, accepted: bool) -> Mapping[str, object]:
    tip, lost, _ = found
    return {
        "topic": tip.topic,
        "partition": tip.partition,
        "cut_off": None if lost.cut_off is None else asdict(lost.cut_off),
        "moved_from_offset": lost.moved_from_offset,
        "local_start_offset": lost.local_start_offset,
        "accepted": accepted,
    }


def _lines(tip: TopicIdPartition, lost: Losses) -> Iterator[str]:
    place = f"{tip.topic}:{tip.partition}"
    cut = lost.cut_off
    if cut is not None:
        yield (
            f"{place} diverged: an election cut off {cut.start_offset}..{cut.end_offset} of leader"
            f" epochs up to {cut.leader_epoch}, of {cut.segment_count} stored segments"
        )
    if lost.moved_from_offset is not None:
        yield (
            f"{place} external start: the broker's log begins at {lost.local_start_offset}, we"
            f" moved it to {lost.moved_from_offset}"
        )
