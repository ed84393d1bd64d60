"""From settings to TLS contexts, and the warnings for an operator."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from rlm.config.tls import ClientAuth, GatewayTlsConfig, ListenerProtocol
from rlm.gateway.listener.tls import security_warnings, tls_towards_brokers, tls_towards_clients
from rlm.tls.reloading_context import ReloadingContext
from rlm.wire.security.settings import SaslSettings, SecuritySettings, TlsSettings
from rsm.segment.errors import InvalidConfigError
from tests.fakes.clock import FakeClock
from tests.services.certificates import CertificateAuthority

_SASL = SaslSettings(mechanism="PLAIN", username="u", password="p")  # noqa: S106 - guards nothing


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("pem"))


def _config(authority: CertificateAuthority, **settings: object) -> GatewayTlsConfig:
    return GatewayTlsConfig.model_validate(
        {
            "keystore": authority.issue("gateway").keystore,
            "truststore": authority.certificate,
            "protocol": ListenerProtocol.SSL,
            **settings,
        }
    )


def _towards_clients(
    config: GatewayTlsConfig, clock: FakeClock, renewals: list[bool]
) -> ReloadingContext:
    fresh = tls_towards_clients(config, clock, renewals.append)
    assert fresh is not None
    return fresh


@pytest.mark.parametrize(
    ("client_auth", "mode"),
    [
        (ClientAuth.NONE, ssl.CERT_NONE),
        (ClientAuth.REQUESTED, ssl.CERT_OPTIONAL),
        (ClientAuth.REQUIRED, ssl.CERT_REQUIRED),
    ],
)
def test_towards_clients_when_certificates_are_asked_for_then_they_are_verified(
    authority: CertificateAuthority, client_auth: ClientAuth, mode: ssl.VerifyMode
) -> None:
    context = _towards_clients(
        _config(authority, client_auth=client_auth), FakeClock(), []
    ).current()

    assert context.verify_mode is mode
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_towards_clients_when_one_version_is_enabled_then_no_other_is_spoken(
    authority: CertificateAuthority,
) -> None:
    config = _config(authority, enabled_protocols=("TLSv1.3",))

    context = _towards_clients(config, FakeClock(), []).current()

    assert context.minimum_version is context.maximum_version is ssl.TLSVersion.TLSv1_3


def test_towards_clients_when_they_speak_plain_text_then_there_is_no_context() -> None:
    assert tls_towards_clients(GatewayTlsConfig(), FakeClock(), list[bool]().append) is None


def test_context_when_its_files_change_then_new_connections_get_a_new_one(
    authority: CertificateAuthority,
) -> None:
    clock, renewals = FakeClock(), list[bool]()
    fresh = _towards_clients(_config(authority), clock, renewals)
    before = fresh.current()
    clock.advance(1_000)
    assert fresh.current() is before
    authority.issue("gateway")

    assert fresh.current() is before  # the file was checked a moment ago
    clock.advance(1_000)
    assert fresh.current() is not before
    assert renewals == [True]


def test_context_when_changed_files_are_bad_then_it_stays_until_they_are_good(
    authority: CertificateAuthority,
) -> None:
    clock, renewals = FakeClock(), list[bool]()
    config = _config(authority)
    fresh = _towards_clients(config, clock, renewals)
    before = fresh.current()
    assert config.keystore is not None
    content = config.keystore.read_text()
    config.keystore.write_text(content[:100])
    clock.advance(1_000)

    assert fresh.current() is before
    clock.advance(1_000)
    assert fresh.current() is before
    assert renewals == [False]
    config.keystore.write_text(content)
    clock.advance(1_000)
    assert fresh.current() is not before
    assert renewals == [False, True]


def test_context_when_its_files_are_gone_for_a_while_then_it_stays(
    authority: CertificateAuthority,
) -> None:
    clock, renewals = FakeClock(), list[bool]()
    config = _config(authority)
    fresh = _towards_clients(config, clock, renewals)
    before = fresh.current()
    assert config.keystore is not None
    config.keystore.unlink()
    clock.advance(1_000)

    assert fresh.current() is before
    assert renewals == [False]


def test_towards_brokers_when_the_product_has_a_certificate_then_clients_do_not_show_it(
    tmp_path: Path, authority: CertificateAuthority
) -> None:
    """Clients must not get the rights of `rlm`, so the gateway does not open these files."""
    tls = TlsSettings(
        ca_path=str(authority.certificate),
        certificate_path=str(tmp_path / "own.crt"),
        key_path=str(tmp_path / "own.key"),
    )

    fresh = tls_towards_brokers(
        GatewayTlsConfig(), SecuritySettings(tls=tls), FakeClock(), list[bool]().append
    )

    assert fresh is not None
    context = fresh.current()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_towards_brokers_when_their_listener_is_plain_text_then_there_is_no_context() -> None:
    own = SecuritySettings(sasl=_SASL)

    assert tls_towards_brokers(GatewayTlsConfig(), own, FakeClock(), list[bool]().append) is None


def test_towards_brokers_when_a_certificate_has_no_use_then_it_is_refused() -> None:
    config = GatewayTlsConfig(upstream_keystore=Path("/gw.pem"))

    with pytest.raises(InvalidConfigError) as raised:
        tls_towards_brokers(config, SecuritySettings(), FakeClock(), list[bool]().append)

    assert raised.value.context["key"] == "gateway.upstream.ssl.keystore.location"


def test_warnings_when_all_clients_get_one_principal_then_says_so(
    authority: CertificateAuthority,
) -> None:
    own = SecuritySettings(tls=TlsSettings())
    config = GatewayTlsConfig(upstream_keystore=authority.certificate)

    (warning,) = security_warnings(config, own)

    assert "even without a certificate" in warning
    assert security_warnings(config, SecuritySettings(tls=TlsSettings(), sasl=_SASL)) == ()
    assert security_warnings(GatewayTlsConfig(), own) == ()
