"""Which topics `rlm pause` and `rlm resume` change."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.cli.invocation.session import CommandSession
from rlm.cli.topics.pause import Resumption, pause_tasks
from rlm.operator.pause import ALL_TASKS
from rlmm.events.pause import PausableTask, paused_tasks
from rlmm.events.policy import TopicPolicyChanged
from rsm.segment.errors import InvalidConfigError, NotFoundError
from rsm.segment.ids import id_to_text
from tests.fakes.world import KEEP_REMOTE
from tests.unit.rlm.topics.tiering_world import TOPIC, TOPIC_ID, Process

DELETE = frozenset({PausableTask.DELETE})
DELETED_ID = UUID(int=0xDE1E7ED)
DELETED = "deleted-orders"


def tier(process: Process, topic: str, topic_id: UUID) -> None:
    policy = replace(KEEP_REMOTE, topic=topic, topic_id=topic_id)
    event = TopicPolicyChanged(event_id=process.world.new_id(), policy=policy)
    assert process.metadata.publish(event).accepted


def change(
    session: CommandSession,
    topic: str,
    tasks: frozenset[PausableTask],
    *,
    topic_id: UUID | None = None,
    resume: bool,
) -> None:
    if resume:
        Resumption.find(session, topic, tasks, topic_id=topic_id).run()
    else:
        pause_tasks(session, topic, tasks, topic_id=topic_id)


def test_pause_when_the_topic_is_deleted_then_its_removal_is_paused(
    process: Process, session: CommandSession
) -> None:
    tier(process, DELETED, DELETED_ID)

    left = pause_tasks(session, DELETED, DELETE)

    assert left == DELETE
    assert paused_tasks(process.metadata, DELETED_ID) == DELETE


@pytest.mark.parametrize("is_recreated_one_tiered", [True, False])
def test_pause_when_the_topic_is_recreated_then_the_deleted_one_is_paused_too(
    process: Process, session: CommandSession, *, is_recreated_one_tiered: bool
) -> None:
    tier(process, TOPIC, DELETED_ID)
    if is_recreated_one_tiered:
        tier(process, TOPIC, TOPIC_ID)

    pause_tasks(session, TOPIC, DELETE)

    paused = [paused_tasks(process.metadata, each) for each in (DELETED_ID, TOPIC_ID)]
    assert paused == [DELETE, DELETE if is_recreated_one_tiered else frozenset()]


def test_resume_when_the_topic_is_deleted_then_its_removal_continues(
    process: Process, session: CommandSession
) -> None:
    tier(process, DELETED, DELETED_ID)
    pause_tasks(session, DELETED, ALL_TASKS)

    left = Resumption.find(session, DELETED, DELETE).run()

    assert left == ALL_TASKS - DELETE
    assert paused_tasks(process.metadata, DELETED_ID) == ALL_TASKS - DELETE


@pytest.mark.parametrize("tasks", [ALL_TASKS, DELETE])
def test_resume_when_the_topic_is_deleted_then_names_what_managers_delete(
    process: Process, session: CommandSession, tasks: frozenset[PausableTask]
) -> None:
    tier(process, TOPIC, DELETED_ID)
    tier(process, TOPIC, TOPIC_ID)
    pause_tasks(session, TOPIC, ALL_TASKS, topic_id=DELETED_ID)

    resumption = Resumption.find(session, TOPIC, tasks)

    (line,) = resumption.removal_lines()
    assert line.startswith(f"topic {TOPIC} of id {id_to_text(DELETED_ID)} was deleted")
    assert resumption.left() == ALL_TASKS - tasks
    assert paused_tasks(process.metadata, DELETED_ID) == ALL_TASKS


@pytest.mark.parametrize("topic", [TOPIC, DELETED])
def test_resume_when_it_deletes_no_topics_data_then_names_nothing(
    process: Process, session: CommandSession, topic: str
) -> None:
    """A live topic's expiry follows its retention, and copies of a deleted topic delete nothing."""
    tier(process, TOPIC, TOPIC_ID)
    tier(process, DELETED, DELETED_ID)
    pause_tasks(session, topic, ALL_TASKS)
    tasks = ALL_TASKS if topic == TOPIC else ALL_TASKS - DELETE

    assert list(Resumption.find(session, topic, tasks).removal_lines()) == []


@pytest.mark.parametrize("resume", [False, True])
def test_pause_when_no_topic_of_the_name_was_ever_tiered_then_refused(
    session: CommandSession, *, resume: bool
) -> None:
    with pytest.raises(InvalidConfigError, match="the topic is not tiered"):
        change(session, TOPIC, DELETE, resume=resume)


@pytest.mark.parametrize("resume", [False, True])
def test_pause_when_neither_cluster_nor_metadata_has_the_topic_then_names_it(
    session: CommandSession, *, resume: bool
) -> None:
    with pytest.raises(NotFoundError, match=r"no topic of this name \(topic=deleted-orders\)"):
        change(session, DELETED, DELETE, resume=resume)


def test_resume_when_deletions_of_both_topics_are_paused_then_refused_without_an_id(
    process: Process, session: CommandSession
) -> None:
    """The live topic's expiry must not be resumed together with the removal of the deleted one."""
    tier(process, TOPIC, DELETED_ID)
    tier(process, TOPIC, TOPIC_ID)
    pause_tasks(session, TOPIC, ALL_TASKS)

    with pytest.raises(InvalidConfigError, match="several topics of this name") as refused:
        Resumption.find(session, TOPIC, ALL_TASKS).run()

    assert id_to_text(DELETED_ID) in str(refused.value)
    assert id_to_text(TOPIC_ID) in str(refused.value)
    assert paused_tasks(process.metadata, DELETED_ID) == ALL_TASKS
    assert paused_tasks(process.metadata, TOPIC_ID) == ALL_TASKS


def test_resume_when_only_copies_are_wanted_then_those_of_both_topics(
    process: Process, session: CommandSession
) -> None:
    tier(process, TOPIC, DELETED_ID)
    tier(process, TOPIC, TOPIC_ID)
    pause_tasks(session, TOPIC, ALL_TASKS)

    left = Resumption.find(session, TOPIC, ALL_TASKS - DELETE).run()

    assert left == DELETE


@pytest.mark.parametrize("resume", [False, True])
def test_pause_when_an_id_is_given_then_only_the_topic_of_that_id(
    process: Process, session: CommandSession, *, resume: bool
) -> None:
    tier(process, TOPIC, DELETED_ID)
    tier(process, TOPIC, TOPIC_ID)
    if resume:
        pause_tasks(session, TOPIC, DELETE)

    change(session, TOPIC, DELETE, topic_id=TOPIC_ID, resume=resume)

    paused = [paused_tasks(process.metadata, each) for each in (DELETED_ID, TOPIC_ID)]
    assert paused == ([DELETE, frozenset()] if resume else [frozenset(), DELETE])


def test_pause_when_no_topic_of_the_name_has_the_id_then_names_it_and_those_that_exist(
    process: Process, session: CommandSession
) -> None:
    tier(process, TOPIC, TOPIC_ID)

    ids = f"topic_id={id_to_text(DELETED_ID)}, topic_ids={id_to_text(TOPIC_ID)}"
    with pytest.raises(NotFoundError, match=ids):
        pause_tasks(session, TOPIC, DELETE, topic_id=DELETED_ID)
