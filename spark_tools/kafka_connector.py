"""The Kafka client's settings by Java's names, as Spark has them, and by those of librdkafka.

Pure. What has no counterpart in Java's is given by `kafka.*` keys, which are passed on and win.
"""

from __future__ import annotations

import re
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

# What librdkafka has by the same name, and by another one.
_LIBRDKAFKAS = {
    **{name: name for name in (*_SAME, "sasl.mechanism", "ssl.endpoint.identification.algorithm")},
    "ssl.key.password": "ssl.key.password",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
    "ssl.truststore.location": "ssl.ca.location",
}
_TYPES = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "PKCS12"}
_LOGIN = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_INSTEAD = {"isolation.level": "the option isolation"}
# How a consumer of Java's paces itself: nothing here does the same.
_PACING = (
    "auto.commit", "connections.max.idle", "default.api.timeout", "fetch.", "heartbeat.",
    "max.partition.fetch", "max.poll", "metadata.max.age", "receive.buffer", "reconnect.backoff",
    "request.timeout", "retry.backoff", "send.buffer", "session.timeout",
)  # fmt: skip


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Librdkafka's settings for a user's `kafka.*` options, as Spark's Kafka source takes them.

    Names may be in any case. InvalidConfigError for one that has no counterpart.
    """
    found: dict[str, str] = {}
    for name, value in options.items():
        key = name.lower().removeprefix(PREFIX)
        if not name.lower().startswith(PREFIX) or key.startswith(_PACING):
            continue
        if key in _TYPES and value.upper() == _TYPES[key]:
            continue
        if key == "sasl.jaas.config":
            found.update(_login(value))
        elif key in _LIBRDKAFKAS:
            found[_LIBRDKAFKAS[key]] = value
        else:
            expected = _INSTEAD.get(key, "a key of librdkafka's, as client.NAME")
            if key in _TYPES:
                expected = f"{_TYPES[key]}, or {expected}"
            raise InvalidConfigError("this option cannot be taken", option=name, expected=expected)
    return found


def _login(jaas: str) -> dict[str, str]:
    """User and password of a line that names one of the modules known here. InvalidConfigError."""
    login_options = dict(_LOGIN.findall(jaas))
    if (
        jaas.split()[:1] not in [[module] for module in _LOGIN_MODULES.values()]
        or len(login_options) < 2
    ):
        raise InvalidConfigError(
            "this way to log in cannot be taken",
            option="kafka.sasl.jaas.config",
            expected="PlainLoginModule or ScramLoginModule with username and password, or client.*",
        )
    plain = {name: re.sub(r"\\(.)", r"\1", text) for name, text in login_options.items()}
    return {"sasl.username": plain["username"], "sasl.password": plain["password"]}


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
