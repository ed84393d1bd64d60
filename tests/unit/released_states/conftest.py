"""The states that tests read: each that is kept, and the one that this checkout writes."""

from __future__ import annotations

import pytest

from tests.released_states.directories import (
    StateDirectory,
    committed_state,
    committed_versions,
    current_version,
)
from tests.released_states.writer import write_state

_WRITTEN_NOW = "written-now"


@pytest.fixture(scope="session")
def written_state(tmp_path_factory: pytest.TempPathFactory) -> StateDirectory:
    """The state of this version as `make released-state` would keep it now."""
    scratch = tmp_path_factory.mktemp("written-state")
    written = StateDirectory(scratch / "state")
    write_state(written, version=current_version(), scratch=scratch)
    return written


@pytest.fixture(scope="session", params=[*committed_versions(), _WRITTEN_NOW])
def state(request: pytest.FixtureRequest) -> StateDirectory:
    """Each kept state, and the one just written, which is read before it is kept."""
    return _state(request)


@pytest.fixture(scope="session", params=[current_version(), _WRITTEN_NOW])
def current_state(request: pytest.FixtureRequest) -> StateDirectory:
    """Return the kept state of this version, and the state that it writes now.

    A field that only the second one has is not kept yet.
    """
    return _state(request)


def _state(request: pytest.FixtureRequest) -> StateDirectory:
    if request.param == _WRITTEN_NOW:
        written: StateDirectory = request.getfixturevalue("written_state")
        return written
    return committed_state(request.param)
