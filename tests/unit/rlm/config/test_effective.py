"""Every setting with its value and origin; no secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.config.effective import MASK, EffectiveSetting, effective_settings, secret_settings
from rlm.config.sections import CLIENT_KEYS, known_keys
from rsm.secret_keys import is_secret
from rsm.segment.errors import InvalidConfigError

SECRET = "s3cr3t-value"  # noqa: S105 - looked for in outputs
REQUIRED = {
    "bootstrap.servers": "a:9092",
    "state.dir": "/var/rlm",
    "rsm.config.storage.filesystem.root": "/mnt/store",
}
NEEDED_BY_SECRETS = {
    "rsm.config.storage.backend": "azure",
    "rsm.config.storage.azure.container.name": "segments",
    "rsm.config.storage.azure.connection.string": SECRET,
    "gateway.listener.security.protocol": "SSL",
    "gateway.ssl.keystore.location": "/keys/gateway.pem",
    "gateway.upstream.ssl.keystore.location": "/keys/upstream.pem",
    "client.security.protocol": "SASL_SSL",
    "rest.ssl.keystore.location": "/keys/rest.pem",
}
SECRET_KEYS = [key for key in known_keys() if is_secret(key)]


def _file(directory: Path, **settings: str) -> Path:
    path = directory / "rlm.properties"
    lines = (f"{key}={value}" for key, value in {**REQUIRED, **settings}.items())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _shown(path: Path) -> dict[str, EffectiveSetting]:
    return {each.key: each for each in effective_settings(path)}


def test_settings_when_shown_then_every_key_of_the_reference_has_a_value_and_an_origin(
    tmp_path: Path,
) -> None:
    shown = _shown(_file(tmp_path, **{"remote.copy.verify": "read"}))

    assert set(known_keys()) - shown.keys() == {CLIENT_KEYS}
    assert shown["remote.copy.verify"] == EffectiveSetting(
        key="remote.copy.verify", value="read", line=4
    )
    assert shown["rsm.config.storage.backend"].value == "filesystem"
    assert shown["rsm.config.storage.read.only"].value == "false"
    assert shown["gateway.ssl.key.password"].value == "none"
    assert shown["rsm.config.storage.backend"].is_default


def test_settings_when_durations_or_sizes_then_the_number_that_applies_is_shown(
    tmp_path: Path,
) -> None:
    given = {
        "log.local.retention.ms": "7d",
        "log.local.retention.bytes": "-2",
        "rsm.config.chunk.size": "1 MiB",
        "client.linger.ms": "5ms",
    }

    shown = _shown(_file(tmp_path, **given))

    assert {key: shown[key].value for key in given} == {
        "log.local.retention.ms": "604800000",
        "log.local.retention.bytes": "-2",
        "rsm.config.chunk.size": "1048576",
        "client.linger.ms": "5ms",
    }


def test_settings_when_the_last_of_equal_keys_applies_then_its_line_is_shown(
    tmp_path: Path,
) -> None:
    path = _file(tmp_path)
    with path.open("a") as file:
        file.write("bootstrap.servers=b:9092\n")

    assert _shown(path)["bootstrap.servers"] == EffectiveSetting(
        key="bootstrap.servers", value="b:9092", line=4
    )


@pytest.mark.parametrize(
    "key",
    [
        *SECRET_KEYS,
        "client.sasl.password",
        "client.ssl.key.pem",
        "client.ssl.key.password",
        "client.sasl.oauthbearer.config",
        "client.sasl.oauthbearer.client.secret",
    ],
)
def test_settings_when_a_key_is_secret_then_its_value_is_masked(tmp_path: Path, key: str) -> None:
    path = _file(tmp_path, **{**NEEDED_BY_SECRETS, key: SECRET})

    shown = effective_settings(path)

    assert next(each for each in shown if each.key == key).value == MASK
    assert SECRET not in repr(shown)
    assert SECRET not in str([each.to_json() for each in shown])
    assert set(secret_settings(path).values()) == {SECRET}


def test_settings_when_of_a_plugin_then_masked_for_only_it_knows_its_secrets(
    tmp_path: Path,
) -> None:
    key = "rsm.config.storage.account"
    path = _file(tmp_path, **{"rsm.config.storage.backend": "my.store:Store", key: SECRET})

    assert _shown(path)[key].value == MASK
    assert set(secret_settings(path).values()) == {SECRET}


@pytest.mark.parametrize("value", ["true", "1", "s3", "268435456"])
def test_secrets_when_a_plugins_value_is_part_of_other_texts_then_masked_only_at_its_key(
    tmp_path: Path, value: str
) -> None:
    """A debug bundle masks secrets in JSON and metrics, where a value like `true` is common."""
    key = "rsm.config.storage.cached"
    path = _file(tmp_path, **{"rsm.config.storage.backend": "my.store:Store", key: value})

    assert _shown(path)[key].value == MASK
    assert secret_settings(path) == {}


def test_secrets_when_the_key_of_a_plugin_suggests_one_then_also_a_short_value(
    tmp_path: Path,
) -> None:
    settings = {"rsm.config.storage.backend": "my.store:Store", "rsm.config.storage.password": "x1"}

    assert secret_settings(_file(tmp_path, **settings)) == {"rsm.config.storage.password": "x1"}


def test_settings_when_the_file_is_invalid_then_its_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="the setting is unknown"):
        effective_settings(_file(tmp_path, unknown="1"))
