"""The gateway's TLS settings: those that are less secure than they look are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.config.load import load_config, load_gateway_config
from rlm.config.tls import ClientAuth, ListenerProtocol
from rsm.segment.errors import InvalidConfigError

_NEEDED = {
    "bootstrap.servers": "a:1",
    "log.dirs": "/log",
    "rsm.config.storage.filesystem.root": "/store",
    "state.dir": "/state",
}
_TLS = {"gateway.listener.security.protocol": "SSL", "gateway.ssl.keystore.location": "/gw.pem"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rlm.properties"


def _write(path: Path, *settings: dict[str, str]) -> None:
    given = [_NEEDED, *settings]
    path.write_text("".join(f"{key}={value}\n" for each in given for key, value in each.items()))


def test_tls_when_nothing_is_set_then_clients_speak_plain_text(path: Path) -> None:
    _write(path)

    tls = load_config(path).gateway_tls

    assert not tls.is_on
    assert tls.client_auth is ClientAuth.NONE


def test_tls_when_it_is_on_then_files_and_versions_are_read(path: Path) -> None:
    _write(
        path,
        _TLS,
        {
            "gateway.ssl.truststore.location": "/ca.pem",
            "gateway.ssl.client.auth": "required",
            "gateway.ssl.enabled.protocols": "TLSv1.3",
        },
    )

    tls = load_config(path).gateway_tls

    assert tls.protocol is ListenerProtocol.SSL
    assert (tls.keystore, tls.truststore) == (Path("/gw.pem"), Path("/ca.pem"))
    assert (tls.client_auth, tls.enabled_protocols) == (ClientAuth.REQUIRED, ("TLSv1.3",))


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        pytest.param(
            {"gateway.listener.security.protocol": "SSL"},
            "gateway.listener.security.protocol",
            id="no keystore",
        ),
        pytest.param(
            {"gateway.ssl.keystore.location": "/gw.pem"},
            "gateway.listener.security.protocol",
            id="a keystore and plain text",
        ),
        pytest.param(
            {**_TLS, "gateway.ssl.client.auth": "required"},
            "gateway.ssl.client.auth",
            id="nobody to trust",
        ),
        pytest.param(
            {**_TLS, "gateway.ssl.enabled.protocols": "TLSv1.1,TLSv1.2"},
            "gateway.ssl.enabled.protocols",
            id="too old a version",
        ),
        pytest.param(
            {"gateway.advertised.name.template": "b{node}.example.com"},
            "gateway.advertised.name.template",
            id="names in a file with log dirs",
        ),
        pytest.param(
            {**_TLS, "gateway.ssl.keystore.type": "JKS"}, "gateway.ssl.keystore.type", id="not PEM"
        ),
    ],
)
def test_tls_when_settings_contradict_then_the_key_to_change_is_named(
    path: Path, settings: dict[str, str], key: str
) -> None:
    _write(path, settings)

    with pytest.raises(InvalidConfigError) as raised:
        load_config(path)

    assert raised.value.context["key"] == key


def test_tls_when_there_is_a_password_then_nothing_shows_it(path: Path) -> None:
    _write(path, _TLS, {"gateway.ssl.key.password": "sesame"})

    tls = load_config(path).gateway_tls

    assert "sesame" not in repr(tls) + str(tls)
    assert tls.key_password is not None
    assert tls.key_password.get_secret_value() == "sesame"


@pytest.mark.parametrize(
    "template", ["", "b.example.com", "b{node}{node}.a", "b_{node}", "{node}."]
)
def test_name_template_when_it_is_malformed_then_is_refused(path: Path, template: str) -> None:
    settings = {**_NEEDED, **_TLS, "gateway.advertised.name.template": template}
    del settings["log.dirs"]
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    with pytest.raises(InvalidConfigError) as raised:
        load_gateway_config(path)

    assert raised.value.context["key"] == "gateway.advertised.name.template"


def test_name_template_when_clients_speak_plain_text_then_is_refused(path: Path) -> None:
    settings = {**_NEEDED, "gateway.advertised.name.template": "b{node}.example.com"}
    del settings["log.dirs"]
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    with pytest.raises(InvalidConfigError, match="host names only in TLS"):
        load_gateway_config(path)
