"""Which topics `rlm pause` and `rlm resume` change."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.cli.invocation.session import CommandSession
from rlm.cli.topics.pause import change_pauses
from rlm.config.load import client_command_config
from rlm.operator.pause import ALL_TASKS
from rlmm.events.pause import PausableTask
from rlmm.events.policy import TopicPolicyChanged
from rsm.segment.errors import InvalidConfigError, NotFoundError
from tests.twins.world import KEEP_REMOTE
from tests.unit.rlm.cli.command_session import session_of
from tests.unit.rlm.topics.tiering_world import TOPIC, TOPIC_ID, Process, World

DELETE = frozenset({PausableTask.DELETE})
DELETED_ID = UUID(int=0xDE1E7ED)
DELETED = "deleted-orders"


@pytest.fixture
def process() -> Process:
    """A cluster that has the topic `orders` and no other one."""
    return World().process()


@pytest.fixture
def session(process: Process) -> CommandSession:
    return session_of(process, client_command_config("broker1:9092", None, lambda _: None))


def tier(process: Process, topic: str, topic_id: UUID) -> None:
    policy = replace(KEEP_REMOTE, topic=topic, topic_id=topic_id)
    event = TopicPolicyChanged(event_id=process.world.new_id(), policy=policy)
    assert process.metadata.publish(event).accepted


def test_pause_when_the_topic_is_deleted_then_its_removal_is_paused(
    process: Process, session: CommandSession
) -> None:
    tier(process, DELETED, DELETED_ID)

    left = change_pauses(session, DELETED, DELETE, resume=False)

    assert left == DELETE
    assert process.metadata.paused_tasks(DELETED_ID) == DELETE


@pytest.mark.parametrize("is_recreated_one_tiered", [True, False])
def test_pause_when_the_topic_is_recreated_then_the_deleted_one_is_paused_too(
    process: Process, session: CommandSession, *, is_recreated_one_tiered: bool
) -> None:
    tier(process, TOPIC, DELETED_ID)
    if is_recreated_one_tiered:
        tier(process, TOPIC, TOPIC_ID)

    change_pauses(session, TOPIC, DELETE, resume=False)

    paused = [process.metadata.paused_tasks(each) for each in (DELETED_ID, TOPIC_ID)]
    assert paused == [DELETE, DELETE if is_recreated_one_tiered else frozenset()]


def test_resume_when_the_topic_is_deleted_then_its_removal_continues(
    process: Process, session: CommandSession
) -> None:
    tier(process, DELETED, DELETED_ID)
    change_pauses(session, DELETED, ALL_TASKS, resume=False)

    left = change_pauses(session, DELETED, DELETE, resume=True)

    assert left == ALL_TASKS - DELETE
    assert process.metadata.paused_tasks(DELETED_ID) == ALL_TASKS - DELETE


@pytest.mark.parametrize("resume", [False, True])
def test_pause_when_no_topic_of_the_name_was_ever_tiered_then_refused(
    session: CommandSession, *, resume: bool
) -> None:
    with pytest.raises(InvalidConfigError, match="the topic is not tiered"):
        change_pauses(session, TOPIC, DELETE, resume=resume)


@pytest.mark.parametrize("resume", [False, True])
def test_pause_when_neither_cluster_nor_metadata_has_the_topic_then_names_it(
    session: CommandSession, *, resume: bool
) -> None:
    with pytest.raises(NotFoundError, match=r"no topic of this name \(topic=deleted-orders\)"):
        change_pauses(session, DELETED, DELETE, resume=resume)
