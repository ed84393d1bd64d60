"""Translates the Kafka client's settings between Java's names (Spark) and librdkafka's. Pure.

Spark's connector gets the user's `kafka.*` keys unchanged; they override translated settings.
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

# Java's settings that `client_settings` accepts, with librdkafka's names.
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
# `client_settings` ignores Java's settings with these prefixes: they control a consumer's pace.
_PACING = (
    "auto.commit", "connections.max.idle", "default.api.timeout", "fetch.", "heartbeat.",
    "max.partition.fetch", "max.poll", "metadata.max.age", "receive.buffer", "reconnect.backoff",
    "request.timeout", "retry.backoff", "send.buffer", "session.timeout",
)  # fmt: skip


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings for a user's `kafka.*` options of Spark's Kafka source.

    Names may have any case. Ignores settings that control a consumer's pace. Raises
    InvalidConfigError for any other `kafka.*` option that it cannot translate.
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
            raise InvalidConfigError("the option is not supported", option=name, expected=expected)
    return found


def _login(jaas: str) -> dict[str, str]:
    """Return librdkafka's user and password from a JAAS line.

    Raises InvalidConfigError for an unknown login module, and for a missing user or password.
    """
    login_options = dict(_LOGIN.findall(jaas))
    if (
        jaas.split()[:1] not in [[module] for module in _LOGIN_MODULES.values()]
        or len(login_options) < 2
    ):
        raise InvalidConfigError(
            "the login is invalid: rlm does not support it",
            option="kafka.sasl.jaas.config",
            expected="PlainLoginModule or ScramLoginModule with username and password, or client.*",
            advice="Use one of the expected logins",
        )
    plain = {name: re.sub(r"\\(.)", r"\1", text) for name, text in login_options.items()}
    return {"sasl.username": plain["username"], "sasl.password": plain["password"]}


def connector_options(client: Mapping[str, str], passed: Mapping[str, str]) -> dict[str, str]:
    """Return the options of Spark's Kafka connector; `passed` are the user's `kafka.*` keys.

    Raises InvalidConfigError for a login that only `kafka.sasl.jaas.config` can express.
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
            "cannot translate the login for Spark's Kafka connector: its mechanism is unknown",
            expected="the key kafka.sasl.jaas.config",
            mechanism=mechanism,
            advice="Set the expected key",
        )
    fields = {"username": "sasl.username", "password": "sasl.password"}
    quoted = (f'{name}="{_escaped(client.get(key, ""))}"' for name, key in fields.items())
    return f"{module} required {' '.join(quoted)};"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
