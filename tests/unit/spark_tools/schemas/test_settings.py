from __future__ import annotations

from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.option_values import OptionValues
from spark_tools.schemas.registry import SchemaRegistry
from spark_tools.schemas.schema_text import SchemaFormat
from spark_tools.schemas.settings import ColumnSettings, DecodeMode, DecodeSettings

pytestmark = pytest.mark.unit

_URL = {"schema.registry.url": "https://registry:8081"}


def settings(**options: str) -> DecodeSettings:
    return DecodeSettings.of(OptionValues(options))


def test_settings_when_nothing_is_given_then_nothing_is_decoded() -> None:
    assert settings() == DecodeSettings()
    assert settings(valueFormat="binary").columns == ()


def test_settings_when_given_then_those() -> None:
    found = settings(
        **_URL, keyFormat="json", keySchema="{}", valueFormat="protobuf", valueSubject="s",
        valueSchemaVersion="3", valueMessage="M", decodeMode="permissive",
    )  # fmt: skip

    assert found.mode is DecodeMode.PERMISSIVE
    assert found.columns == (
        ColumnSettings(
            column="key", format=SchemaFormat.JSON, schema="{}", subject=None, version=None,
            message=None,
        ),
        ColumnSettings(
            column="value", format=SchemaFormat.PROTOBUF, schema=None, subject="s", version=3,
            message="M",
        ),
    )  # fmt: skip


def test_registry_when_secrets_are_given_then_they_reach_its_client_and_no_repr(
    tmp_path: Path,
) -> None:
    """By options, and by a file that options override."""
    file = tmp_path / "registry.properties"
    file.write_text(
        "schema.registry.url=http://other\n"
        "schema.registry.ssl.key.password=a-secret\n"
        "schema.registry.bearer.auth.token = another-secret\n"
    )

    found = settings(**_URL, **{"schema.registry.config": str(file)}).registry

    assert found is not None
    assert found.client["url"] == _URL["schema.registry.url"]
    assert found.client["ssl.key.password"] == "a-secret"
    assert found.client["bearer.auth.token"] == "another-secret"
    assert "secret" not in repr(found)
    by_option = settings(**_URL, **{"schema.registry.basic.auth.user.info": "me:a-secret"})
    assert by_option.registry is not None
    assert "secret" not in repr(by_option)
    SchemaRegistry(by_option.registry).close()


def test_registry_when_a_token_is_given_then_the_client_takes_it() -> None:
    found = settings(**_URL, **{"schema.registry.bearer.auth.token": "a-secret"}).registry

    assert found is not None
    SchemaRegistry(found).close()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"valueFormat": "xml"}, "valueFormat"),
        ({"valueFormat": "avro"}, "schema.registry.url"),
        ({"valueSchema": "{}"}, "valueFormat"),
        ({"valueFormat": "avro", "valueSchema": "/no/such/file"}, "valueSchema"),
        ({"valueFormat": "avro", "valueSchema": "{}", "valueSubject": "s"}, "valueSubject"),
        ({"valueFormat": "avro", "valueSchema": "{}", "valueMessage": "M"}, "valueMessage"),
        ({**_URL, "valueFormat": "avro", "valueSchemaVersion": "0"}, "valueSchemaVersion"),
        ({**_URL, "schema.registry.max.retires": "1"}, "max.retires"),
        ({**_URL, "schema.registry.max.retries": "1000"}, "max.retries"),
        ({"schema.registry.max.retries": "1"}, "schema.registry.url"),
        ({"schema.registry.url": "registry:8081"}, "schema.registry.url"),
        ({"schema.registry.url": "http://"}, "schema.registry.url"),
        ({"schema.registry.config": "/no/such/file"}, "file=/no/such/file"),
    ],
)
def test_settings_when_wrong_then_the_option_is_named(options: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidConfigError, match=named.replace(".", r"\.")):
        settings(**options)


@pytest.mark.parametrize(
    ("unknown", "nearest"),
    [
        ("schema.registry.max.retires", "schema.registry.max.retries"),
        ("schema.registry.basic.auth.user", "schema.registry.basic.auth.user.info"),
        ("schema.registry.ssl.ca.locaton", "schema.registry.ssl.ca.location"),
    ],
)
def test_registry_when_a_key_is_misspelt_then_the_nearest_is_reported(
    unknown: str, nearest: str
) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        settings(**_URL, **{unknown: "x"})

    assert caught.value.context == {"option": unknown, "did_you_mean": nearest}


def test_registry_when_an_unknown_key_is_like_none_then_none_is_suggested() -> None:
    """All keys have the prefix, so the prefix makes no key similar."""
    with pytest.raises(InvalidConfigError) as caught:
        settings(**_URL, **{"schema.registry.verbose": "x"})

    assert caught.value.context["option"] == "schema.registry.verbose"
    assert "did_you_mean" not in caught.value.context


def test_registry_when_its_url_has_a_password_then_refused_without_it() -> None:
    with pytest.raises(InvalidConfigError, match=r"basic\.auth\.user\.info") as caught:
        settings(**{"schema.registry.url": "http://me:a-secret@registry"})

    assert "secret" not in str(caught.value)
