"""Every way to log in, on the listeners of a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from rlm.broker.cluster import fetch_cluster_view
from rlm.wire.connection import ConnectionSettings, Connector
from rlm.wire.security.settings import security_of
from rsm.segment.errors import CorruptError, RetriableError
from rsm.system_clock import SystemClock
from tests.services.certificates import openssl
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.ports import free_ports
from tests.services.provider import ServiceProvider
from tests.services.waiting import wait_until

_USER = "alice"
_PASSWORD = "hunter2, with = and ,"  # noqa: S105 - guards nothing
_HOST = "127.0.0.1"
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PROTOCOLS = {"LOGIN": "SASL_PLAINTEXT", "TLS": "SSL", "LOGINTLS": "SASL_SSL"}
_JAAS = "org.apache.kafka.common.security"
_SESSION_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredCluster:
    """A cluster whose broker has a listener for each protocol; `ports` by listener name."""

    cluster: KafkaCluster
    ports: dict[str, int]
    pem: Path

    def client(self, protocol: str, **settings: str) -> dict[str, str]:
        known = {"security.protocol": protocol, "ssl.ca.location": str(self.pem / "broker.crt")}
        return {**known, **{key.replace("_", "."): value for key, value in settings.items()}}

    def mutual_tls(self) -> dict[str, str]:
        return self.client(
            "SSL",
            ssl_certificate_location=str(self.pem / "client.crt"),
            ssl_key_location=str(self.pem / "client.key"),
        )


@pytest.fixture(scope="module")
def secured(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredCluster]:
    ports = dict(zip(_PROTOCOLS, free_ports(len(_PROTOCOLS)), strict=True))
    cluster = services.kafka(tmp_path_factory.mktemp("secured"))
    directory = cluster.broker.directory
    for name in ("broker", "client"):
        _certificate(directory, name)
    own = cluster.broker.properties
    extra = ",".join(f"{name}://{_HOST}:{port}" for name, port in ports.items())
    own["listeners"] += "," + extra
    own["advertised.listeners"] += "," + extra
    own["listener.security.protocol.map"] += "".join(f",{n}:{p}" for n, p in _PROTOCOLS.items())
    own.update(_security(directory))
    with cluster:
        _add_scram_user(cluster)
        yield SecuredCluster(cluster=cluster, ports=ports, pem=directory)


def _certificate(directory: Path, name: str) -> None:
    """Create a key and a self-signed certificate, and one file with both for the broker."""
    key, certificate = directory / f"{name}.key", directory / f"{name}.crt"
    options = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    for extension in (f"subjectAltName=IP:{_HOST}", "keyUsage=digitalSignature,keyCertSign"):
        options += ["-addext", extension]
    openssl("req", "-x509", *options, "-keyout", str(key), "-out", str(certificate))
    both = directory / f"{name}.pem"
    both.write_text(key.read_text() + certificate.read_text())


def _security(directory: Path) -> dict[str, str]:
    properties = {
        "sasl.enabled.mechanisms": ",".join(_MECHANISMS),
        "connections.max.reauth.ms": str(_SESSION_MS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "client.crt"),
        "listener.name.tls.ssl.client.auth": "required",
    }
    plain = f'{_JAAS}.plain.PlainLoginModule required user_{_USER}="{_PASSWORD}";'
    scram = f"{_JAAS}.scram.ScramLoginModule required;"
    for listener in ("login", "logintls"):
        for mechanism in _MECHANISMS:
            jaas = plain if mechanism == "PLAIN" else scram
            properties[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = jaas
    return properties


def _add_scram_user(cluster: KafkaCluster) -> None:
    admin = admin_client(cluster.bootstrap_servers)
    changes = [
        UserScramCredentialUpsertion(
            _USER, ScramCredentialInfo(mechanism, 4096), _PASSWORD.encode()
        )
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    for each in changes:
        admin.alter_user_scram_credentials([each])[_USER].result(30)


def _cluster_id(client: dict[str, str], port: int) -> str:
    connector = Connector(ConnectionSettings(security=security_of(client)), SystemClock())
    connection = connector.connect(_HOST, port)
    try:
        assert fetch_cluster_view(connection, ()).broker(1).port == port
        return fetch_cluster_view(connection, ()).cluster_id
    finally:
        connection.close()


@pytest.mark.parametrize("mechanism", _MECHANISMS)
@pytest.mark.parametrize("listener", ["LOGIN", "LOGINTLS"])
def test_login_when_password_is_right_then_the_broker_answers(
    secured: SecuredCluster, listener: str, mechanism: str
) -> None:
    client = secured.client(
        _PROTOCOLS[listener],
        sasl_mechanism=mechanism,
        sasl_username=_USER,
        sasl_password=_PASSWORD,
    )

    # A broker knows a new SCRAM user a moment after the controller.
    port = secured.ports[listener]
    found = wait_until(lambda: _cluster_id(client, port), despite=RetriableError)

    assert found == secured.cluster.cluster_id


@pytest.mark.parametrize("mechanism", _MECHANISMS)
def test_login_when_password_is_wrong_then_retriable_and_without_the_password(
    secured: SecuredCluster, mechanism: str
) -> None:
    client = secured.client(
        "SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_username=_USER,
        sasl_password="not-the-password",  # noqa: S106 - guards nothing
    )

    with pytest.raises(RetriableError) as raised:
        _cluster_id(client, secured.ports["LOGIN"])

    assert raised.value.context["error"] == "SASL_AUTHENTICATION_FAILED"
    assert "not-the-password" not in str(raised.value)


def test_tls_when_both_have_certificates_then_the_broker_answers(secured: SecuredCluster) -> None:
    found = _cluster_id(secured.mutual_tls(), secured.ports["TLS"])

    assert found == secured.cluster.cluster_id


def test_tls_when_client_has_no_certificate_then_retriable(secured: SecuredCluster) -> None:
    with pytest.raises(RetriableError):
        _cluster_id(secured.client("SSL"), secured.ports["TLS"])


def test_tls_when_broker_is_not_trusted_then_retriable(secured: SecuredCluster) -> None:
    client = {**secured.mutual_tls(), "ssl.ca.location": str(secured.pem / "client.crt")}

    with pytest.raises(RetriableError, match="certificate verify failed"):
        _cluster_id(client, secured.ports["TLS"])


def test_tls_when_host_name_is_not_in_the_certificate_then_retriable(
    secured: SecuredCluster,
) -> None:
    connector = Connector(
        ConnectionSettings(security=security_of(secured.mutual_tls())), SystemClock()
    )

    with pytest.raises(RetriableError, match="certificate verify failed"):
        connector.connect("localhost", secured.ports["TLS"])


def test_plain_text_when_listener_wants_tls_then_fails(secured: SecuredCluster) -> None:
    with pytest.raises((CorruptError, RetriableError)):
        _cluster_id({}, secured.ports["TLS"])
