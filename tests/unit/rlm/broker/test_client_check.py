from __future__ import annotations

from pathlib import Path

import pytest

from rlm.broker.client_check import check_client
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
