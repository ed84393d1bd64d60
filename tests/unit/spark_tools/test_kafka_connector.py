from __future__ import annotations

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.kafka_connector import client_settings, connector_options

LIBRDKAFKAS = {
    "bootstrap.servers": "broker:9092",
    "security.protocol": "SASL_SSL",
    "ssl.ca.location": "/ca.pem",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "repair",
    "sasl.password": 'pa"ss\\key',
}
JAVAS = {
    "kafka.bootstrap.servers": "broker:9092",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.ssl.truststore.type": "PEM",
    "kafka.ssl.truststore.location": "/ca.pem",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule "
    'required username="repair" password="pa\\"ss\\\\key";',
}


@pytest.mark.parametrize("mechanism", ["sasl.mechanism", "sasl.mechanisms"])
def test_options_when_logging_in_by_password_then_javas_names(mechanism: str) -> None:
    """The mechanism has two names in librdkafka."""
    client = {mechanism if name == "sasl.mechanism" else name: v for name, v in LIBRDKAFKAS.items()}

    options = connector_options(client, {"kafka.fetch.min.bytes": "1"})

    assert options == {**JAVAS, "kafka.fetch.min.bytes": "1"}


def test_options_when_only_the_user_knows_how_to_log_in_then_asked() -> None:
    client = {"bootstrap.servers": "broker:9092", "sasl.mechanism": "GSSAPI"}

    with pytest.raises(InvalidConfigError, match=r"kafka\.sasl\.jaas\.config"):
        connector_options(client, {})
    passed = {"kafka.sasl.jaas.config": "x"}
    assert connector_options(client, passed)["kafka.sasl.jaas.config"] == "x"


def test_settings_when_given_as_spark_has_them_then_librdkafkas() -> None:
    options = {**JAVAS, "kafka.max.poll.records": "1000", "subscribe": "orders"}

    assert client_settings(options) == LIBRDKAFKAS


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("kafka.ssl.truststore.type", "JKS", "PEM, or a key of librdkafka's"),
        ("kafka.sasl.login.class", "org.example.Login", "a key of librdkafka's"),
        ("kafka.sasl.jaas.config", "org.example.Module required;", "PlainLoginModule"),
        ("kafka.sasl.jaas.config", "", "PlainLoginModule"),
    ],
)
def test_settings_when_librdkafka_has_none_then_said(
    option: str, value: str, expected: str
) -> None:
    with pytest.raises(InvalidConfigError, match=expected):
        client_settings({option: value})
