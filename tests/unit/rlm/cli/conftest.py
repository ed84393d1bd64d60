"""Fixtures: a manager's real HTTP API with scripted answers, and logging restored after a test."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from rlm.config.values import HostPort
from rlm.rest.http_server import HttpServer, bind_listener, local_address
from rlm.rest.manager_api import manager_api
from tests.unit.rlm.cli.stated_managers import StatedView


@pytest.fixture
def view() -> StatedView:
    return StatedView()


@pytest.fixture
def address(view: StatedView) -> Iterator[str]:
    bound = bind_listener(HostPort(host="127.0.0.1", port=0), key="rest.listener")
    server = HttpServer(
        manager_api(view, CollectorRegistry(), logs=bytes), bound, name="stated-manager"
    )
    server.start()
    yield str(local_address(bound))
    server.stop()
    bound.close()


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """Restore the logging of the process, which a command configures."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
