from __future__ import annotations

import pytest

from rlm.wire.security.settings import SaslSettings, SecuritySettings, TlsSettings, security_of
from rsm.segment.errors import InvalidConfigError

_SECRET = "hunter2"  # noqa: S105 - guards nothing
_SASL = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": _SECRET}


def test_security_when_nothing_is_said_then_plain_text() -> None:
    assert security_of({"socket.timeout.ms": "1"}) == SecuritySettings()


def test_security_when_ssl_is_set_then_verified_against_the_host_name() -> None:
    found = security_of(
        {"security.protocol": "SSL", "ssl.ca.location": "ca.pem", "ssl.key.password": _SECRET}
    )

    assert found.sasl is None
    assert found.tls == TlsSettings(
        ca_path="ca.pem", key_password=_SECRET, should_check_host_name=True
    )


def test_security_when_identification_is_none_then_host_name_is_not_checked() -> None:
    found = security_of(
        {"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "none"}
    )

    assert found.tls == TlsSettings(should_check_host_name=False)


@pytest.mark.parametrize("key", ["sasl.mechanism", "sasl.mechanisms"])
def test_security_when_sasl_over_tls_then_both(key: str) -> None:
    found = security_of(
        {
            "security.protocol": "SASL_SSL",
            key: "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": _SECRET,
        }
    )

    assert found.tls == TlsSettings()
    assert found.sasl == SaslSettings(mechanism="SCRAM-SHA-512", username="alice", password=_SECRET)


def test_security_when_printed_then_without_secrets() -> None:
    found = security_of({**_SASL, "security.protocol": "sasl_ssl", "ssl.key.password": "hunter3"})

    assert "hunter" not in repr(found)


@pytest.mark.parametrize(
    ("client", "key"),
    [
        ({"security.protocol": "kerberos"}, "security.protocol"),
        ({"ssl.ca.pem": "x"}, "ssl.ca.pem"),
        ({"sasl.oauthbearer.config": "x"}, "sasl.oauthbearer.config"),
        ({"enable.sasl.oauthbearer.unsecure.jwt": "true"}, "enable.sasl.oauthbearer.unsecure.jwt"),
        (
            {"security.protocol": "ssl", "enable.ssl.certificate.verification": "false"},
            "enable.ssl.certificate.verification",
        ),
        (
            {"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "dns"},
            "ssl.endpoint.identification.algorithm",
        ),
        ({"security.protocol": "ssl", "ssl.key.location": "k"}, "ssl.certificate.location"),
        ({"security.protocol": "sasl_plaintext"}, "sasl.mechanisms"),
        ({**_SASL, "security.protocol": "sasl_ssl", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"}, "sasl.username"),
        (
            {
                "security.protocol": "sasl_ssl",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "alice",
            },
            "sasl.password",
        ),
    ],
)
def test_security_when_it_cannot_be_honoured_then_the_key_is_named(
    client: dict[str, str], key: str
) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        security_of(client)

    assert raised.value.context["key"] == key
