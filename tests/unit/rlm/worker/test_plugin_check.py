from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rlm.config.load import Config, load_gateway_config
from rlm.worker.plugin_check import check_plugins, has_plugin
from rsm.segment.errors import InvalidConfigError

EXAMPLE = "tests.plugin_example.rlm_example"
STORE = f"{EXAMPLE}.storage:SqliteChunkStorage"
PARTS = {
    "rsm.config.storage.backend": STORE,
    "rsm.config.layout": f"raw,{EXAMPLE}.layout:LabeledLayout",
    "remote.log.storage.manager.class.name": f"{EXAMPLE}.manager:ArchiveStorageManager",
    "remote.log.metadata.manager.class.name": f"{EXAMPLE}.metadata:LoggingMetadataManager",
}


def load(directory: Path, settings: Mapping[str, str]) -> Config:
    values = {
        "bootstrap.servers": "a:1",
        "state.dir": str(directory),
        "rsm.config.storage.filesystem.root": str(directory),
        **settings,
    }
    path = directory / "rlm.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return load_gateway_config(path)


def test_plugins_when_all_parts_are_built_in_then_there_is_none(tmp_path: Path) -> None:
    assert not has_plugin(load(tmp_path, {}))


@pytest.mark.parametrize("key", PARTS)
def test_plugins_when_any_part_is_a_class_that_can_be_used_then_it_is_found(
    tmp_path: Path, key: str
) -> None:
    config = load(tmp_path, {key: PARTS[key]})

    check_plugins(config)

    assert has_plugin(config)


@pytest.mark.parametrize("key", PARTS)
def test_plugins_when_a_class_does_not_implement_its_interface_then_its_key_is_named(
    tmp_path: Path, key: str
) -> None:
    config = load(tmp_path, {**PARTS, key: "pathlib:Path"})

    with pytest.raises(InvalidConfigError, match="does not implement its interface") as raised:
        check_plugins(config)

    assert raised.value.context["key"] == key
