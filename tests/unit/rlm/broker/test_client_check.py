from __future__ import annotations

from pathlib import Path

import pytest

from rlm.broker.client_check import check_client
from rlm.config.client_properties import COMMON_KEYS
from rsm.segment.errors import InvalidConfigError


@pytest.mark.parametrize(
    "client",
    [
        {},
        {"socket.timeout.ms": "5000", "fetch.min.bytes": "1"},
        {"security.protocol": "ssl"},
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "u",
            "sasl.password": "p",
        },
    ],
)
def test_check_client_when_settings_are_right_then_returns(client: dict[str, str]) -> None:
    check_client(client)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("nonsense", "1"),
        ("socket.timeout.ms", "abc"),
        ("socket.timeout.ms", "-5"),
        ("error_cb", "print"),
        ("max.in.flight", "1000"),
        ("session.timeout.ms", "0"),
        ("ssl.ca.location", "/no/such/ca"),
        ("ssl.ca.location", "/no\0such"),
        ("ssl.key.location", "/no\ud800such"),
        ("security.protocol", "foo"),
    ],
)
def test_check_client_when_a_setting_is_wrong_then_names_it(key: str, value: str) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        check_client({"client.id": "rlm", key: value})

    assert raised.value.context["key"] == key


def test_check_client_when_certificates_are_none_then_names_the_file_s_key(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("no certificate")

    with pytest.raises(InvalidConfigError) as raised:
        check_client({"security.protocol": "ssl", "ssl.ca.location": str(tmp_path / "ca")})

    assert raised.value.context["key"] == "ssl.ca.location"


def test_check_client_when_a_secret_is_refused_then_does_not_show_it() -> None:
    with pytest.raises(InvalidConfigError) as raised:
        check_client({"ssl.key.password": "hush-hush", "plugin.library.paths": "/hush-hush"})

    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("sasl.pasword", "sasl.password"),
        ("security.protocl", "security.protocol"),
        ("ssl.ca.locaton", "ssl.ca.location"),
        ("reconnect.backof.ms", "reconnect.backoff.ms"),
    ],
)
def test_check_client_when_a_key_is_misspelled_then_suggests_the_common_one(
    key: str, meant: str
) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        check_client({key: "1"})

    assert raised.value.context["key"] == key
    assert raised.value.context["did_you_mean"] == meant


@pytest.mark.parametrize("client", [{"nonsense": "1"}, {"socket.timeout.ms": "abc"}])
def test_check_client_when_no_key_is_close_or_the_value_is_wrong_then_suggests_none(
    client: dict[str, str],
) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        check_client(client)

    assert "did_you_mean" not in raised.value.context


@pytest.mark.parametrize("key", COMMON_KEYS)
def test_check_client_when_a_key_is_suggested_then_it_is_supported(key: str) -> None:
    """A person who follows a suggestion must not meet the next refusal."""
    assert _refusal({key: "1"}) not in {
        "cannot use a setting of the Kafka client: rlm does not support it",
        "the Kafka client rejects a setting: No such configuration property",
    }


def _refusal(client: dict[str, str]) -> str:
    try:
        check_client(client)
    except InvalidConfigError as error:
        is_unknown = "No such configuration property" in str(error)
        return f"{error.message}: No such configuration property" if is_unknown else error.message
    return ""
