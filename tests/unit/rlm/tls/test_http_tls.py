"""HTTPS between commands and managers."""

from __future__ import annotations

import shutil
import ssl
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from rlm.config.tls import RestTlsConfig
from rlm.rest.manager_client import ManagerClient
from rlm.tls.http_tls import client_context, server_context
from rsm.segment.errors import InvalidConfigError, RetriableError
from tests.log_dir_builder import ManualClock
from tests.services import plain_http
from tests.services.certificates import CertificateAuthority
from tests.unit.rlm.cli.stated_managers import report
from tests.unit.rlm.rest.signed_manager import SignedManager, client_of, registered, serving


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("pem"))


@pytest.fixture
def manager() -> SignedManager:
    manager = SignedManager()
    manager.set_secret(1)
    manager.view.reports = (report(),)
    return manager


def _config(**values: object) -> RestTlsConfig:
    return RestTlsConfig.model_validate(
        {f"rest.ssl.{name.replace('_', '.')}": value for name, value in values.items()}
    )


def _trusting(manager: SignedManager, certificate: Path) -> ManagerClient:
    config = _config(truststore_location=str(certificate))
    return client_of(manager.cluster, client_context(config))


def test_manager_when_its_authority_is_trusted_then_answers_by_https_only(
    authority: CertificateAuthority, manager: SignedManager
) -> None:
    keystore = authority.issue("manager", password="sesame").keystore  # noqa: S106 - guards nothing
    config = _config(keystore_location=str(keystore), key_password="sesame")  # noqa: S106 - as above

    with (
        serving(manager.app, server_context(config, ManualClock())) as address,
        closing(_trusting(manager, authority.certificate)) as client,
    ):
        rows = client.partitions(registered(address, serves_https=True))
        with pytest.raises(RetriableError, match="cannot be reached"):
            client.partitions(registered(address))

    assert [row.topic_id_partition.topic for row in rows] == ["orders"]


def test_client_when_no_truststore_is_set_then_trusts_the_authorities_of_the_system(
    authority: CertificateAuthority, manager: SignedManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = _config(keystore_location=str(authority.issue("manager").keystore))
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))

    with (
        serving(manager.app, server_context(config, ManualClock())) as address,
        closing(client_of(manager.cluster, client_context(_config()))) as client,
    ):
        rows = client.partitions(registered(address, serves_https=True))

    assert [row.topic_id_partition.topic for row in rows] == ["orders"]


def test_client_when_the_authority_is_another_then_does_not_send_its_request(
    authority: CertificateAuthority, manager: SignedManager, tmp_path: Path
) -> None:
    config = _config(keystore_location=str(authority.issue("manager").keystore))
    other = CertificateAuthority(tmp_path, "other")

    with (
        serving(manager.app, server_context(config, ManualClock())) as address,
        closing(_trusting(manager, other.certificate)) as client,
        pytest.raises(RetriableError, match="cannot be reached") as raised,
    ):
        client.partitions(registered(address, serves_https=True))

    assert "certificate verify failed" in str(raised.value.context["reason"])
    assert manager.refusals == []


def test_keystore_when_it_changes_then_new_connections_see_the_new_certificate(
    authority: CertificateAuthority, manager: SignedManager, tmp_path: Path
) -> None:
    clock, keystore = ManualClock(), tmp_path / "keystore.pem"
    shutil.copy(authority.issue("first").keystore, keystore)
    server = server_context(_config(keystore_location=str(keystore)), clock)

    with serving(manager.app, server) as address:
        before = _certificate(address)
        second = authority.issue("second")
        shutil.copy(second.keystore, keystore)
        clock.sleep_ms(2_000)
        after = _certificate(address)

    assert before != after
    assert after == ssl.PEM_cert_to_DER_cert(second.certificate.read_text())


def test_keystore_when_it_cannot_be_read_then_the_setting_and_the_file_are_named(
    tmp_path: Path,
) -> None:
    config = _config(keystore_location=str(tmp_path / "none.pem"))

    with pytest.raises(InvalidConfigError) as raised:
        server_context(config, ManualClock())

    assert raised.value.context["key"] == "rest.ssl.keystore.location"


def test_api_when_no_keystore_is_set_then_plain_http(manager: SignedManager) -> None:
    tls = server_context(_config(), ManualClock())

    with serving(manager.app, tls) as address:
        assert plain_http.get(f"http://{address}/healthz").status_code == httpx.codes.OK


def _certificate(address: str) -> bytes:
    host, _, port = address.rpartition(":")
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))
