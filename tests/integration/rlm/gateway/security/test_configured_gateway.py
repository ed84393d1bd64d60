"""TLS and logins as an operator configures them, in the processes of `rlm run`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.reading import read_from
from tests.integration.rlm.gateway.security.secured_broker import SecuredBroker, login
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.services.ports import free_ports

_PASSWORD = "sesame"  # noqa: S105 - guards nothing


@pytest.fixture
def settings(secured: SecuredBroker) -> dict[str, str]:
    """A gateway with an encrypted key, which reaches its broker by SASL_SSL."""
    shown = secured.authority.issue("configured", password=_PASSWORD)
    own = {"security.protocol": "sasl_ssl", **login("SCRAM-SHA-256")}
    own["ssl.ca.location"] = str(secured.authority.certificate)
    (port,) = free_ports(1)
    return {
        **{f"client.{key}": value for key, value in own.items()},
        "bootstrap.servers": f"127.0.0.1:{secured.ports['LOGINTLS']}",
        "gateway.listener": f"127.0.0.1:{port}",
        "gateway.listener.security.protocol": "SSL",
        "gateway.ssl.key.password": _PASSWORD,
        "gateway.ssl.keystore.location": str(shown.keystore),
    }


def test_run_when_tls_and_logins_are_configured_then_clients_read_by_them(
    secured: SecuredBroker, secured_topic: TieredTopic, settings: dict[str, str], tmp_path: Path
) -> None:
    host = BrokerHost(
        tmp_path, secured.cluster, metadata_topic="configured-metadata", settings=settings
    )
    client = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(secured.authority.certificate),
        **login("SCRAM-SHA-256"),
    }
    start = secured_topic.local_start_offset()
    with host.running():
        host.wait_ready()
        read = read_from(
            settings["gateway.listener"], secured_topic.name, offset=start, settings=client
        )
    assert [message.value() for message in read] == secured_topic.values[0][start:]
    assert _PASSWORD not in host.log_path.read_text()


def test_run_when_the_keys_password_is_wrong_then_it_ends_and_names_the_setting(
    secured: SecuredBroker, settings: dict[str, str], tmp_path: Path
) -> None:
    wrong = {**settings, "gateway.ssl.key.password": "not-it"}
    host = BrokerHost(tmp_path, secured.cluster, metadata_topic="unused", settings=wrong)

    with host.started("-m", "rlm", "run", "--config", str(host.config_path)) as process:
        code = process.wait(deadline_s=30.0)

    said = host.log_path.read_text()
    assert code not in (0, None)
    assert "gateway.ssl.key.password" in said
    assert "not-it" not in said
    assert not host.state_dir.exists()  # nothing was started
