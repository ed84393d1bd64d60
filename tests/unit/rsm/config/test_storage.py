"""The parser of the keys of stores and segments, which `rlm` and the Spark jobs share."""

from __future__ import annotations

import pytest

from rsm.config.storage import parse_storage, plugin_prefixes
from rsm.plugins.plugin import ClassName, Plugin
from rsm.segment.errors import InvalidConfigError
from rsm.store_settings import SegmentSettings

_RSM = "rsm.config."
_MANAGER_KEY = "remote.log.storage.manager.class.name"
_CLASS = ClassName(module="acme.stores", name="Tape")
DIRECTORY = {"storage.filesystem.root": "/srv"}


def with_prefix(options: dict[str, str]) -> dict[str, str]:
    return {_RSM + key: value for key, value in options.items()}


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"backend": "azure", "azure.container.name": "c"}, "azure.connection.string"),
        ({"backend": "azure", "azure.connection.string": "x"}, "azure.container.name"),
        ({"backend": "gcs"}, "gcs.bucket.name"),
        ({"backend": "hdfs", "hdfs.root": "/cold"}, "hdfs.namenode.urls"),
        ({"backend": "hdfs", "hdfs.namenode.urls": "http://a:1"}, "hdfs.root"),
        (
            {"backend": "gcs", "gcs.bucket.name": "b", "gcs.credentials.default": "maybe"},
            "gcs.credentials.default",
        ),
        (
            {"backend": "azure", "azure.container.name": "c", "azure.connection.string": ""},
            "azure.connection.string",
        ),
        ({"backend": "tape"}, "backend"),
        ({"backend": "acme.stores.Tape"}, "backend"),
    ],
)
def test_store_when_something_is_missing_or_wrong_then_its_key_is_named(
    options: dict[str, str], key: str
) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        parse_storage(with_prefix({f"storage.{each}": value for each, value in options.items()}))

    assert raised.value.context["key"] == f"{_RSM}storage.{key}"


def test_store_when_it_has_a_secret_then_it_is_never_shown() -> None:
    options = {
        "storage.backend": "azure",
        "storage.azure.container.name": "c",
        "storage.azure.connection.string": "AccountKey=hush",
    }

    found = parse_storage(with_prefix(options))

    assert "hush" not in repr(found) + repr(found.store())


def test_backend_when_it_is_unknown_then_the_error_names_all_and_the_form_of_a_class() -> None:
    with pytest.raises(InvalidConfigError, match=r"'gcs' or package\.module:Class"):
        parse_storage(with_prefix({"storage.backend": "tape"}))


def test_store_when_it_is_a_class_then_it_gets_only_the_settings_that_rlm_does_not_know() -> None:
    options = {
        "storage.backend": "acme.stores:Tape",
        "storage.drive": "/dev/nst0",
        "storage.read.only": "true",
        "key.prefix": "cold",
    }

    assert parse_storage(with_prefix(options)).store() == Plugin(
        class_name=_CLASS,
        key="rsm.config.storage.backend",
        prefix="rsm.config.storage.",
        settings={"drive": "/dev/nst0"},
    )


def test_plugin_when_its_setting_is_a_secret_then_no_value_is_shown() -> None:
    options = {"storage.backend": "acme.stores:Tape", "storage.password": "hush"}

    config = parse_storage(with_prefix(options))

    assert "hush" not in repr(config) + repr(config.store())


def test_layouts_when_listed_then_the_first_one_writes_and_all_keep_their_order() -> None:
    options = DIRECTORY | {"layout": "raw, acme.stores:Tape", "layout.level": "3"}

    assert parse_storage(with_prefix(options)).segments() == SegmentSettings(
        layouts=(
            "raw",
            Plugin(
                class_name=_CLASS,
                key="rsm.config.layout",
                prefix="rsm.config.layout.",
                settings={"level": "3"},
            ),
        )
    )


@pytest.mark.parametrize("layouts", ["", "raw,raw", "blocks", "raw,acme.stores"])
def test_layouts_when_one_is_unknown_or_twice_then_refused(layouts: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"rsm\.config\.layout"):
        parse_storage(with_prefix(DIRECTORY | {"layout": layouts}))


def test_storage_manager_when_it_is_a_class_then_it_gets_all_and_may_ignore_what_rlm_knows() -> (
    None
):
    options = DIRECTORY | {"drive": "/dev/nst0", "chunk.size": "1"}

    found = parse_storage(with_prefix(options) | {_MANAGER_KEY: str(_CLASS)}).segments().manager

    assert found is not None
    assert found.settings == options
    assert found.unread == {"storage.filesystem.root", "chunk.size"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ()),
        ({"rsm.config.storage.backend": "s3"}, ()),
        ({"rsm.config.storage.backend": "a:B"}, ("rsm.config.storage.",)),
        ({"rsm.config.layout": "raw,a:B"}, ("rsm.config.layout.",)),
        ({_MANAGER_KEY: "a:B"}, ("rsm.config.",)),
    ],
)
def test_prefixes_when_a_class_is_configured_then_its_keys_are_allowed(
    values: dict[str, str], expected: tuple[str, ...]
) -> None:
    assert plugin_prefixes(values) == expected
