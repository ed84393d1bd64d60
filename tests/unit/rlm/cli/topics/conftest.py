"""A cluster with one topic, and a command's session with it."""

from __future__ import annotations

import pytest

from rlm.cli.invocation.session import CommandSession
from rlm.config.load import client_command_config
from tests.unit.rlm.cli.command_session import session_of
from tests.unit.rlm.topics.tiering_world import Process, World


@pytest.fixture
def process() -> Process:
    """A cluster that has the topic `orders` and no other one."""
    return World().process()


@pytest.fixture
def session(process: Process) -> CommandSession:
    return session_of(process, client_command_config("broker1:9092", None, lambda _: None))
