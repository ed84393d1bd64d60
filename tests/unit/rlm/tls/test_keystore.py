"""PEM files in TLS contexts, and the errors of unusable files."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm.tls.keystore import Keystore, trust
from rsm.segment.errors import InvalidConfigError
from tests.services.certificates import Certificate, CertificateAuthority

_PASSWORD = "sesame"  # noqa: S105 - guards nothing


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("pem"))


@pytest.fixture(scope="module")
def plain(authority: CertificateAuthority) -> Certificate:
    return authority.issue("plain")


@pytest.fixture(scope="module")
def encrypted(authority: CertificateAuthority) -> Certificate:
    return authority.issue("encrypted", password=_PASSWORD)


def _keystore(path: Path, password: str | None = None) -> Keystore:
    return Keystore(
        path=path,
        password=password,
        location_key="the.location",
        password_key="the.password",  # noqa: S106 - the name of a setting
    )


def _load(path: Path, password: str | None = None) -> None:
    _keystore(path, password).load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))


def test_keystore_when_its_key_is_plain_then_it_is_taken(plain: Certificate) -> None:
    _load(plain.keystore)


def test_keystore_when_its_password_is_right_then_it_is_taken(encrypted: Certificate) -> None:
    _load(encrypted.keystore, _PASSWORD)


@pytest.mark.parametrize("password", [None, "not-it", "x" * 2_000])
def test_keystore_when_its_password_is_wrong_then_the_setting_is_named_and_no_password(
    encrypted: Certificate, password: str | None
) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        _load(encrypted.keystore, password)

    assert raised.value.context["key"] == "the.password"
    assert raised.value.context["file"] == encrypted.keystore
    assert password is None or password not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(
            lambda a, _: a.certificate.read_text(), "contains none in PEM format", id="no key"
        ),
        pytest.param(lambda a, _: a.key.read_text(), "no certificate", id="no certificate"),
        pytest.param(lambda *_: "", "no certificate", id="empty"),
        pytest.param(
            lambda a, b: a.key.read_text() + b.certificate.read_text(),
            "does not match",
            id="mixed up",
        ),
        pytest.param(
            lambda a, _: a.key.read_text() + a.certificate.read_text()[:200],
            "cannot use the private key",
            id="cut",
        ),
    ],
)
def test_keystore_when_it_can_not_be_used_then_says_why_and_which_file(
    authority: CertificateAuthority,
    plain: Certificate,
    tmp_path: Path,
    content: Callable[[Certificate, Certificate], str],
    message: str,
) -> None:
    path = tmp_path / "bad.pem"
    path.write_text(content(plain, authority.issue("another")))

    with pytest.raises(InvalidConfigError, match=message) as raised:
        _load(path)

    assert raised.value.context["key"] == "the.location"
    assert raised.value.context["file"] == path


def test_keystore_when_there_is_no_file_then_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="No such file"):
        _load(tmp_path / "missing.pem")


def test_trust_when_the_file_holds_no_certificate_then_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("nothing")

    with pytest.raises(InvalidConfigError) as raised:
        trust(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), path, location_key="the.location")

    assert raised.value.context["key"] == "the.location"


def test_keystore_when_it_is_printed_then_shows_no_password(plain: Certificate) -> None:
    assert _PASSWORD not in repr(_keystore(plain.keystore, _PASSWORD))
