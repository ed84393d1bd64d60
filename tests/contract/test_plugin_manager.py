"""The contract of a remote storage manager over a plug-in, by default the example's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rsm.spi import RemoteStorageManager
from tests.contract.configured_plugins import plugin_manager
from tests.contract.storage_manager_contract import StorageManagerContract


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[RemoteStorageManager]:
    """The plug-in, called as `rlm` calls it."""
    opened = plugin_manager(tmp_path)
    yield opened
    opened.close()


class TestPluginManager(StorageManagerContract):
    """The plug-in alone knows where its objects are, so no test looks into a store."""
