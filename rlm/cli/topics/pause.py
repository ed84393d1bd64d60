"""`rlm pause` and `rlm resume`: stop and resume copies, trims and deletions of a topic."""

from __future__ import annotations

from enum import Enum
from typing import Annotated
from uuid import uuid4

import typer

from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.named_topic import find_policies
from rlm.cli.invocation.options import ClusterOptions, with_cluster_options
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.terminal.lines import print_lines
from rlm.operator.pause import ALL_TASKS, Pausing
from rlmm.events.pause import PausableTask
from rsm.segment.errors import InvalidConfigError


class _Task(Enum):
    COPY = "copy"
    TRIM = "trim"
    DELETE = "delete"


_Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]
_What = Annotated[
    _Task | None,
    typer.Argument(metavar="TASK", help="What to pause or resume; all three by default."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("pause", epilog="Example: rlm pause orders trim")(_pause)
    app.command("resume", epilog="Example: rlm resume orders")(_resume)


@with_cluster_options
def _pause(topic: _Topic, what: _What = None, *, cluster: ClusterOptions) -> None:
    """Pause copies, trims or deletions of a topic.

    Applies to the whole cluster and survives restarts. Work on the current segment finishes; no new
    work starts. Stored data stays readable. While copies are paused, unstored data stays local:
    watch the brokers' disks. Also applies to a deleted topic of this name while data of it is
    stored: `rlm pause TOPIC delete` stops the deletion of that data.
    """
    _change(topic, what, cluster, resume=False)


@with_cluster_options
def _resume(topic: _Topic, what: _What = None, *, cluster: ClusterOptions) -> None:
    """Resume paused copies, trims or deletions of a topic.

    Also applies to a deleted topic of this name while data of it is stored.
    """
    _change(topic, what, cluster, resume=True)


def _change(topic: str, what: _Task | None, cluster: ClusterOptions, *, resume: bool) -> None:
    name = PartitionName.parse(topic)
    if name.partition is not None:
        raise InvalidConfigError(
            "the command pauses or resumes whole topics, not one partition",
            found=topic,
            expected="TOPIC",
        )
    tasks = ALL_TASKS if what is None else frozenset({PausableTask[what.name]})
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        left = change_pauses(session, topic, tasks, resume=resume)
    names = ", ".join(task.name.lower() for task in PausableTask if task in left)
    with printing():
        print_lines([f"{topic}: paused: {names or 'nothing'}"])


def change_pauses(
    session: CommandSession, topic: str, tasks: frozenset[PausableTask], *, resume: bool
) -> frozenset[PausableTask]:
    """Pause or resume tasks of all topics of this name; return those that any of them pauses.

    Raises as `find_policies`.
    """
    pausing = Pausing(session.metadata, uuid4)
    act = pausing.resume if resume else pausing.pause
    policies = find_policies(session, topic)
    return frozenset[PausableTask]().union(*(act(each, tasks) for each in policies))
