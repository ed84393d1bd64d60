"""The Kafka client's settings as Spark's Kafka connector wants them: Java's names for librdkafka's.

Pure. What has no counterpart is given by `kafka.*` keys, which are passed on and win.
"""

from __future__ import annotations

from collections.abc import Mapping

from rsm.segment.errors import InvalidConfigError

PREFIX = "kafka."
_SAME = ("bootstrap.servers", "security.protocol", "client.id", "client.rack")
_MECHANISMS = ("sasl.mechanism", "sasl.mechanisms")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def connector_options(client: Mapping[str, str], passed: Mapping[str, str]) -> dict[str, str]:
    """Options for reading and writing; `passed` are the user's own `kafka.*` keys.

    InvalidConfigError for a way to log in that only `kafka.sasl.jaas.config` can tell.
    """
    options = {PREFIX + key: client[key] for key in _SAME if key in client}
    if "ssl.ca.location" in client:
        options[PREFIX + "ssl.truststore.type"] = "PEM"
        options[PREFIX + "ssl.truststore.location"] = client["ssl.ca.location"]
    mechanism = next((client[key] for key in _MECHANISMS if key in client), None)
    if mechanism is not None:
        options[PREFIX + "sasl.mechanism"] = mechanism
        if PREFIX + "sasl.jaas.config" not in passed:
            options[PREFIX + "sasl.jaas.config"] = _jaas(mechanism, client)
    return {**options, **passed}


def _jaas(mechanism: str, client: Mapping[str, str]) -> str:
    module = _LOGIN_MODULES.get(mechanism)
    if module is None:
        raise InvalidConfigError(
            "Spark's Kafka connector must be told how to log in",
            expected="the key kafka.sasl.jaas.config",
            mechanism=mechanism,
        )
    fields = {"username": "sasl.username", "password": "sasl.password"}
    quoted = (f'{name}="{_escaped(client.get(key, ""))}"' for name, key in fields.items())
    return f"{module} required {' '.join(quoted)};"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
