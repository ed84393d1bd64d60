"""TLS to clients, to the broker, and both, also with SASL inside of TLS."""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rlm.config.tls import ClientAuth, GatewayTlsConfig, ListenerProtocol
from rlm.gateway.app.security import GatewayTls
from rlm.gateway.endpoints.sni_routing import ServerNames
from rlm.gateway.listener.server import ServerLimits
from rlm.gateway.listener.tls import tls_towards_brokers, tls_towards_clients
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.wire.security.settings import SecuritySettings, TlsSettings
from rsm.system_clock import SystemClock
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.reading import read_from
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.integration.rlm.gateway.security.secured_broker import SecuredBroker, login
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.services.certificates import Certificate
from tests.services.kafka_runtime import run_tool
from tests.services.waiting import wait_until

_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_HANDSHAKE_TIMEOUT_MS = 3_000
_API_VERSIONS = b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"


@pytest.fixture(scope="module")
def shown(secured: SecuredBroker) -> Certificate:
    """The certificate that gateways present."""
    return secured.authority.issue("gateway")


def _tls(
    secured: SecuredBroker,
    shown: Certificate,
    *,
    client_auth: ClientAuth = ClientAuth.NONE,
    broker: bool = False,
    principal: Certificate | None = None,
) -> GatewayTls:
    """Return TLS to clients, and with `broker` also TLS to the broker, as `principal`."""
    config = GatewayTlsConfig(
        protocol=ListenerProtocol.SSL,
        keystore=shown.keystore,
        truststore=secured.authority.certificate,
        client_auth=client_auth,
        upstream_keystore=None if principal is None else principal.keystore,
    )
    clock, renewals = SystemClock(), list[bool]()
    clients = tls_towards_clients(config, clock, renewals.append)
    assert clients is not None
    if not broker:
        return GatewayTls(towards_clients=clients.current, towards_brokers=None)
    own = SecuritySettings(tls=TlsSettings(ca_path=str(secured.authority.certificate)))
    brokers = tls_towards_brokers(config, own, clock, renewals.append)
    assert brokers is not None
    return GatewayTls(towards_clients=clients.current, towards_brokers=brokers.current)


def _trusting(secured: SecuredBroker, **settings: str) -> dict[str, str]:
    known = {"security.protocol": "SSL", "ssl.ca.location": str(secured.authority.certificate)}
    return {**known, **{key.replace("_", "."): value for key, value in settings.items()}}


@pytest.fixture
def gateway(
    secured: SecuredBroker, secured_host: BrokerHost, shown: Certificate
) -> Iterator[RunningGateway]:
    """A gateway with TLS to clients and plain text to the broker."""
    with running_gateway(secured_host, tls=_tls(secured, shown)) as gateway:
        yield gateway


def test_consumer_when_only_it_speaks_tls_then_reads_what_is_stored(
    gateway: RunningGateway, secured: SecuredBroker, secured_topic: TieredTopic
) -> None:
    read = read_from(gateway.bootstrap_servers, secured_topic.name, settings=_trusting(secured))

    assert [message.value() for message in read] == secured_topic.values[0]
    assert gateway.counts.remote_bytes > 0


def test_consumer_when_both_sides_speak_tls_then_it_logs_in_and_reads_what_is_stored(
    secured: SecuredBroker,
    secured_host: BrokerHost,
    secured_topic: TieredTopic,
    shown: Certificate,
) -> None:
    tls = _tls(secured, shown, broker=True)
    settings = {
        **_trusting(secured),
        "security.protocol": "SASL_SSL",
        **login("SCRAM-SHA-512"),
    }
    port = secured.ports["LOGINTLS"]
    with running_gateway(secured_host, tls=tls, upstream_port=port) as gateway:
        read = read_from(gateway.bootstrap_servers, secured_topic.name, settings=settings)
    assert [message.value() for message in read] == secured_topic.values[0]


def test_consumer_when_certificates_are_principals_then_the_broker_sees_the_gateways(
    secured: SecuredBroker,
    secured_host: BrokerHost,
    secured_topic: TieredTopic,
    shown: Certificate,
) -> None:
    client = secured.authority.issue("client")
    principal = secured.authority.issue("gateways-principal")
    tls = _tls(secured, shown, client_auth=ClientAuth.REQUIRED, broker=True, principal=principal)
    settings = _trusting(
        secured,
        ssl_certificate_location=str(client.certificate),
        ssl_key_location=str(client.key),
    )
    port = secured.ports["TLS"]
    with running_gateway(secured_host, tls=tls, upstream_port=port) as gateway:
        read = read_from(gateway.bootstrap_servers, secured_topic.name, settings=settings)
        assert [message.value() for message in read] == secured_topic.values[0]
        with (
            secured.without_reading(secured_topic.name, principal="User:CN=gateways-principal"),
            pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"),
        ):
            read_from(gateway.bootstrap_servers, secured_topic.name, settings=settings)


def test_gateway_when_clients_must_show_certificates_then_ends_those_that_do_not(
    secured: SecuredBroker, secured_host: BrokerHost, shown: Certificate
) -> None:
    tls = _tls(secured, shown, client_auth=ClientAuth.REQUIRED)
    with (
        running_gateway(secured_host, tls=tls) as gateway,
        _connected(gateway, secured),  # with TLS 1.3 the client's handshake is already complete
    ):
        wait_until(lambda: gateway.counts.closed[DisconnectCause.TLS_HANDSHAKE_FAILED] == 1)


def test_gateway_when_a_client_speaks_plain_text_then_its_connection_ends(
    gateway: RunningGateway,
) -> None:
    with socket.create_connection(_address(gateway), timeout=10.0) as connection:
        connection.sendall(_API_VERSIONS)
        wait_until(lambda: gateway.counts.closed[DisconnectCause.TLS_HANDSHAKE_FAILED] == 1)


def test_gateway_when_a_handshake_is_left_half_way_then_it_ends_in_time(
    secured: SecuredBroker, secured_host: BrokerHost, shown: Certificate
) -> None:
    limits = ServerLimits(handshake_timeout_ms=_HANDSHAKE_TIMEOUT_MS)
    tls = _tls(secured, shown)
    with running_gateway(secured_host, tls=tls, server_limits=limits) as gateway:
        with socket.create_connection(_address(gateway), timeout=60.0) as silent:
            with _connected(gateway, secured) as other:
                assert other.version() == "TLSv1.3"
            assert silent.recv(1) == b""
        wait_until(lambda: gateway.counts.closed[DisconnectCause.TLS_HANDSHAKE_TIMEOUT] == 1)


def test_gateway_when_one_address_begins_handshakes_without_end_then_they_count_as_its_own(
    secured: SecuredBroker, secured_host: BrokerHost, shown: Certificate
) -> None:
    """A silent client must not block others, and frees its slot after the timeout."""
    limits = ServerLimits(connection_count_of_address=3, handshake_timeout_ms=_HANDSHAKE_TIMEOUT_MS)
    tls = _tls(secured, shown)
    with running_gateway(secured_host, tls=tls, server_limits=limits) as gateway:
        closed = gateway.counts.closed
        with ExitStack() as silent:
            for _ in range(5):
                silent.enter_context(socket.create_connection(_address(gateway), timeout=60.0))
            wait_until(lambda: closed[DisconnectCause.TOO_MANY_CONNECTIONS_OF_ADDRESS] == 2)
            wait_until(lambda: closed[DisconnectCause.TLS_HANDSHAKE_TIMEOUT] == 3)
        for _ in range(4):
            with _connected(gateway, secured) as other:
                assert other.version() == "TLSv1.3"
            wait_until(lambda: gateway.counts.connections == 0)


def test_gateway_when_its_certificate_is_renewed_then_new_connections_see_the_new_one(
    gateway: RunningGateway, secured: SecuredBroker, shown: Certificate
) -> None:
    with _connected(gateway, secured) as before:
        number = _serial_number(before)
        renewed = secured.authority.issue("gateway", file_name="renewed")
        shutil.move(renewed.keystore, shown.keystore)

        wait_until(lambda: _current_number(gateway, secured) != number)

        assert before.version() is not None


def test_gateway_when_the_broker_shows_another_name_then_no_client_is_connected(
    secured: SecuredBroker, secured_host: BrokerHost, shown: Certificate
) -> None:
    tls = _tls(secured, shown, broker=True)
    port = secured.ports["LOGINTLS"]
    with running_gateway(
        secured_host, tls=tls, upstream_port=port, upstream_host="localhost"
    ) as gateway:
        with _connected(gateway, secured) as connection:
            assert connection.recv(1) == b""
        wait_until(lambda: gateway.counts.closed[DisconnectCause.BROKER_UNREACHABLE] == 1)


def test_client_when_it_asks_for_a_brokers_name_then_it_reaches_that_broker(
    secured: SecuredBroker, secured_host: BrokerHost
) -> None:
    """One address serves a whole cluster; server names select the broker."""
    alternative = "DNS:*.kafka.test"
    shown = secured.authority.issue("named", subject_alternative=alternative)
    tls, names = _tls(secured, shown), ServerNames("b{node}.kafka.test")
    with running_gateway(secured_host, tls=tls, names=names) as gateway:
        with _connected(gateway, secured, server_name="b1.kafka.test") as connection:
            connection.sendall(_API_VERSIONS)
            assert connection.recv(4)
        with _connected(gateway, secured, server_name="b2.kafka.test") as connection:
            assert connection.recv(4) == b""
        wait_until(lambda: gateway.counts.closed[DisconnectCause.BROKER_UNREACHABLE] == 1)


def test_java_consumer_when_it_trusts_a_pem_file_then_reads_what_is_stored(
    gateway: RunningGateway, secured: SecuredBroker, secured_topic: TieredTopic, tmp_path: Path
) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={secured.authority.certificate}\n"
    )
    count = len(secured_topic.values[0])
    printed = run_tool(
        _CONSUMER,
        *("--bootstrap-server", gateway.bootstrap_servers, "--topic", secured_topic.name),
        *("--command-config", str(settings), "--partition", "0", "--offset", "earliest"),
        *("--max-messages", str(count), "--timeout-ms", "30000"),
        *("--formatter-property", "print.value=false"),
        *("--formatter-property", "print.offset=true"),
    )
    assert printed.count("Offset:") == count


def _address(gateway: RunningGateway) -> tuple[str, int]:
    host, _, port = gateway.bootstrap_servers.rpartition(":")
    return host, int(port)


def _connected(
    gateway: RunningGateway, secured: SecuredBroker, *, server_name: str | None = None
) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(secured.authority.certificate))
    host, _ = address = _address(gateway)
    connection = socket.create_connection(address, timeout=60.0)
    return context.wrap_socket(connection, server_hostname=server_name or host)


def _serial_number(connection: ssl.SSLSocket) -> object:
    certificate = connection.getpeercert()
    assert certificate is not None
    return certificate["serialNumber"]


def _current_number(gateway: RunningGateway, secured: SecuredBroker) -> object:
    with _connected(gateway, secured) as connection:
        return _serial_number(connection)
