"""`rlm pause` and `rlm resume`: stop and resume copies, trims and deletions of a topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated
from uuid import UUID, uuid4

import typer

from rlm.cli.invocation.amounts import size_text
from rlm.cli.invocation.consent import confirm_loss
from rlm.cli.invocation.log_bounds import PartitionName
from rlm.cli.invocation.named_topic import find_policies
from rlm.cli.invocation.options import (
    ClusterOptions,
    YesOption,
    reaching_cluster,
    with_cluster_options,
)
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
    typer.Argument(metavar="TASK", help="copy, trim or delete; default: all three."),
]

_TopicId = Annotated[
    str | None,
    typer.Option(
        "--topic-id",
        metavar="ID",
        help="The topic's id, if a deleted topic has the same name; default: all of this name.",
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
    watch the brokers' disks. Also applies to a deleted topic of this name while its data is stored:
    `rlm pause TOPIC delete` stops the deletion of that data.
    """
    wanted_id, tasks = _selection(topic, what, topic_id)
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        paused = pause_tasks(session, topic, tasks, topic_id=wanted_id)
    with printing():
        print_lines([f"{topic}: paused: {_names(paused)}"])


@with_cluster_options
def _resume(
    topic: _Topic,
    what: _What = None,
    topic_id: _TopicId = None,
    *,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be resumed and deleted; change nothing."),
    ] = False,
    yes: YesOption = False,
    cluster: ClusterOptions,
) -> None:
    """Resume paused copies, trims or deletions of a topic.

    **Data loss:** if data of a deleted topic of this name is still stored, and you resume its
    deletions, managers delete that data. `rlm` asks first. If deletions of several topics of this
    name are paused, give `--topic-id`.
    """
    wanted_id, tasks = _selection(topic, what, topic_id)
    with open_session(cluster.config, timeout_ms=cluster.timeout_ms) as session:
        resumption = Resumption.find(session, topic, tasks, topic_id=wanted_id)
        lines = list(resumption.removal_lines())
        if dry_run:
            lines.append(f"{topic}: would remain paused: {_names(resumption.left())}")
        else:
            question = "Resume, so that managers delete this data?"
            confirm_loss(session, lines, question, yes=yes)
            lines = [f"{topic}: paused: {_names(resumption.run())}"]
    with printing():
        print_lines(lines)


def _selection(
    topic: str, what: _Task | None, topic_id: str | None
) -> tuple[UUID | None, frozenset[PausableTask]]:
    if PartitionName.parse(topic).partition is not None:
        raise InvalidConfigError(
            "cannot pause or resume one partition: the command needs a whole topic",
            found=topic,
            expected="TOPIC",
        )
    wanted_id = None if topic_id is None else id_from_text(topic_id)
    return wanted_id, ALL_TASKS if what is None else frozenset({PausableTask[what.name]})


def _names(tasks: frozenset[PausableTask]) -> str:
    return ", ".join(task.name.lower() for task in PausableTask if task in tasks) or "nothing"


def pause_tasks(
    session: CommandSession,
    topic: str,
    tasks: frozenset[PausableTask],
    *,
    topic_id: UUID | None = None,
) -> frozenset[PausableTask]:
    """Pause tasks of all topics of this name; return the tasks then paused for any.

    With `topic_id`, pauses only that topic's tasks. Raises the errors of `find_policies`, and
    NotFoundError if no topic of this name has the id.
    """
    pausing = Pausing(session.metadata, uuid4)
    policies = _of_id(find_policies(session, topic), topic_id)
    return frozenset[PausableTask]().union(*(pausing.pause(each, tasks) for each in policies))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """Represents what one `rlm resume` resumes: `tasks` of the topics with these policies."""

    session: CommandSession
    tasks: frozenset[PausableTask]
    policies: tuple[TopicPolicy, ...]

    @classmethod
    def find(
        cls,
        session: CommandSession,
        topic: str,
        tasks: frozenset[PausableTask],
        *,
        topic_id: UUID | None = None,
    ) -> Resumption:
        """Find the topics as `pause_tasks` does; raise its errors.

        Raises InvalidConfigError if `run` would resume deletions of several topics at once.
        """
        policies = _of_id(find_policies(session, topic), topic_id)
        found = cls(session=session, tasks=tasks, policies=tuple(policies))
        _require_one_to_delete(found.resumed_deletions())
        return found

    def resumed_deletions(self) -> list[TopicPolicy]:
        """Return the policies whose paused deletions `run` resumes."""
        if PausableTask.DELETE not in self.tasks:
            return []
        return [each for each in self.policies if PausableTask.DELETE in self._paused(each)]

    def removal_lines(self) -> Iterator[str]:
        """Yield a line for each deleted topic whose stored data managers then delete.

        Raises the broker's error if it refuses to describe a topic, for example without permission.
        """
        for policy in self.resumed_deletions():
            if policy.topic_id == self._live_id(policy.topic):
                continue
            metadata = self.session.metadata
            segments = [
                record.metadata
                for tip in metadata.partitions_of(policy.topic_id, policy.topic)
                for record in metadata.list_remote_log_segments(tip)
            ]
            size = size_text(sum(each.segment_size_bytes for each in segments))
            yield (
                f"topic {policy.topic} of id {id_to_text(policy.topic_id)} was deleted: managers"
                f" delete its stored data (segments: {len(segments)}, size: {size})"
            )

    def left(self) -> frozenset[PausableTask]:
        """Return the tasks that would remain paused for any of the topics."""
        return frozenset[PausableTask]().union(*map(self._paused, self.policies)) - self.tasks

    def run(self) -> frozenset[PausableTask]:
        """Resume; return the tasks still paused for any topic. Raises the errors of `Pausing`."""
        pausing = Pausing(self.session.metadata, uuid4)
        resumed = (pausing.resume(each, self.tasks) for each in self.policies)
        return frozenset[PausableTask]().union(*resumed)

    def _paused(self, policy: TopicPolicy) -> frozenset[PausableTask]:
        return paused_tasks(self.session.metadata, policy.topic_id)

    def _live_id(self, topic: str) -> UUID | None:
        with reaching_cluster(self.session.config):
            view = self.session.bootstrap.view((topic,))
        try:
            return view.topic(topic).topic_id
        except NotFoundError:
            return None


def _of_id(policies: Sequence[TopicPolicy], topic_id: UUID | None) -> Sequence[TopicPolicy]:
    if topic_id is None:
        return policies
    found = [each for each in policies if each.topic_id == topic_id]
    if not found:
        raise NotFoundError(
            "cannot find the topic: no tiered topic of this name has the id",
            topic=policies[0].topic,
            topic_id=id_to_text(topic_id),
            topic_ids=_ids(policies),
            advice="Give one of topic_ids",
        )
    return found


def _require_one_to_delete(paused: Sequence[TopicPolicy]) -> None:
    """Raise InvalidConfigError for several topics: the user may mean only one of them."""
    if len(paused) > 1:
        raise InvalidConfigError(
            "cannot resume deletions by name: those of several topics of this name are paused",
            topic=paused[0].topic,
            topic_ids=_ids(paused),
            advice="Data loss: if you resume deletions of a deleted topic, managers delete its "
            f"data. `rlm status {paused[0].topic}` shows a deleted topic's id. Give --topic-id",
        )


def _ids(policies: Iterable[TopicPolicy]) -> str:
    return " ".join(sorted(id_to_text(each.topic_id) for each in policies))
