"""The fixture of tests that read stored segments."""

from __future__ import annotations

import pytest

from tests.remote_world import RemoteWorld


@pytest.fixture
def world() -> RemoteWorld:
    return RemoteWorld()
