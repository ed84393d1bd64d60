"""`rlm pause` and `rlm resume`: stop and resume copies, trims and deletions of a topic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Annotated
from uuid import UUID, uuid4

import typer

from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.named_topic import find_policies
from rlm.cli.invocation.options import ClusterOptions, with_cluster_options
from rlm.cli.invocation.output import printing
from rlm.cli.invocation.session import CommandSession, open_session
from rlm.cli.terminal.lines import print_lines
from rlm.operator.pause import ALL_TASKS, Pausing
from rlmm.events.pause import PausableTask, paused_tasks
from rlmm.events.policy import TopicPolicy
from rsm.segment.errors import InvalidConfigError, NotFoundError
from rsm.segment.ids import id_from_text, id_to_text


class _Task(Enum):
    COPY = "copy"
    TRIM = "trim"
    DELETE = "delete"


_Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]
_What = Annotated[
    _Task | None,
    typer.Argument(metavar="TASK", help="What to pause or resume; all three by default."),
]

_TopicId = Annotated[
    str | None,
    typer.Option(
        "--topic-id",
        metavar="ID",
        help="Only the topic of this id, if a deleted topic has the same name.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("pause", epilog="Example: rlm pause orders trim")(_pause)
    app.command("resume", epilog="Example: rlm resume orders")(_resume)


@with_cluster_options
def _pause(
    topic: _Topic,
    what: _What = None,
    topic_id: _TopicId = None,
    *,
    cluster: ClusterOptions,
) -> None:
    """Pause copies, trims or deletions of a topic.

    Applies to the whole cluster and survives restarts. Work on the current segment finishes; no new
    work starts. Stored data stays readable. While copies are paused, unstored data stays local:
    watch the brokers' disks. Also applies to a deleted topic of this name while data of it is
    stored: `rlm pause TOPIC delete` stops the deletion of that data.
    """
    _change(topic, what, topic_id, cluster, resume=False)


@with_cluster_options
def _resume(
    topic: _Topic,
    what: _What = None,
    topic_id: _TopicId = None,
    *,
    cluster: ClusterOptions,
) -> None:
    """Resume paused copies, trims or deletions of a topic.

    Also applies to a deleted topic of this name while data of it is stored: managers then delete
    this data. If deletions of several topics of the name are paused, give `--topic-id`.
    """
    _change(topic, what, topic_id, cluster, resume=True)


def _change(
    topic: str,
    what: _Task | None,
    topic_id: str | None,
    cluster: ClusterOptions,
    *,
    resume: bool,
) -> None:
    name = PartitionName.parse(topic)
    if name.partition is not None:
        raise InvalidConfigError(
            "the command pauses or resumes whole topics, not one partition",
            found=topic,
            expected="TOPIC",
        )
    wanted_id = None if topic_id is None else id_from_text(topic_id)
    tasks = ALL_TASKS if what is None else frozenset({PausableTask[what.name]})
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        left = change_pauses(session, topic, tasks, topic_id=wanted_id, resume=resume)
    names = ", ".join(task.name.lower() for task in PausableTask if task in left)
    with printing():
        print_lines([f"{topic}: paused: {names or 'nothing'}"])


def change_pauses(
    session: CommandSession,
    topic: str,
    tasks: frozenset[PausableTask],
    *,
    topic_id: UUID | None = None,
    resume: bool,
) -> frozenset[PausableTask]:
    """Pause or resume tasks of all topics of this name; return the tasks then paused for any.

    With `topic_id`, only of that topic. Raises as `find_policies`, NotFoundError if no topic of the
    name has the id, and InvalidConfigError if it would resume deletions of several topics at once.
    """
    pausing = Pausing(session.metadata, uuid4)
    act = pausing.resume if resume else pausing.pause
    policies = _of_id(find_policies(session, topic), topic_id)
    if resume and PausableTask.DELETE in tasks:
        _require_one_to_delete(session, policies)
    return frozenset[PausableTask]().union(*(act(each, tasks) for each in policies))


def _of_id(policies: Sequence[TopicPolicy], topic_id: UUID | None) -> Sequence[TopicPolicy]:
    if topic_id is None:
        return policies
    found = [each for each in policies if each.topic_id == topic_id]
    if not found:
        raise NotFoundError(
            "no tiered topic of this name has the id",
            topic=policies[0].topic,
            topic_id=id_to_text(topic_id),
            topic_ids=_ids(policies),
            advice="Give one of topic_ids",
        )
    return found


def _require_one_to_delete(session: CommandSession, policies: Sequence[TopicPolicy]) -> None:
    """Refuse to resume deletions of several topics at once: the user may mean only one of them."""
    paused = [
        each
        for each in policies
        if PausableTask.DELETE in paused_tasks(session.metadata, each.topic_id)
    ]
    if len(paused) > 1:
        raise InvalidConfigError(
            "cannot resume deletions by name: several topics of this name have them paused",
            topic=paused[0].topic,
            topic_ids=_ids(paused),
            advice=f"Give --topic-id; `rlm status {paused[0].topic}` shows a deleted topic's id. "
            "Resuming its deletions deletes its stored data",
        )


def _ids(policies: Iterable[TopicPolicy]) -> str:
    return " ".join(sorted(id_to_text(each.topic_id) for each in policies))
