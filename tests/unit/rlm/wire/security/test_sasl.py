from __future__ import annotations

import base64

import pytest

from rlm.wire.security.sasl import PlainExchange, ScramExchange
from rsm.segment.errors import CorruptError

# The example exchange of RFC 7677, section 3.
_NONCE = "rOprNGfwEbeRWgbNEkqO"
_SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
_CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
_SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def _scram(nonce: str = _NONCE, username: str = "user") -> ScramExchange:
    return ScramExchange(
        mechanism="SCRAM-SHA-256",
        username=username,
        password="pencil",  # noqa: S106 - RFC 7677's
        nonce=nonce,
    )


def test_plain_when_started_then_says_all_in_one_message() -> None:
    exchange = PlainExchange(username="alice", password="hunter2")  # noqa: S106 - guards nothing

    assert exchange.first_message() == b"\0alice\0hunter2"


def test_scram_when_server_follows_rfc_7677_then_same_messages_and_done() -> None:
    exchange = _scram()

    assert exchange.first_message() == b"n,,n=user,r=" + _NONCE.encode()
    assert exchange.answer(_SERVER_FIRST) == _CLIENT_FINAL
    assert not exchange.is_done
    exchange.answer(_SERVER_FINAL)
    assert exchange.is_done


def test_scram_when_server_signature_is_wrong_then_corrupt_and_not_done() -> None:
    exchange = _scram()
    exchange.answer(_SERVER_FIRST)

    with pytest.raises(CorruptError):
        exchange.answer(b"v=" + base64.b64encode(bytes(32)))

    assert not exchange.is_done


@pytest.mark.parametrize(
    "server_first",
    [
        b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        f"r={_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode(),
        f"r={_NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095".encode(),
        f"r={_NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1000001".encode(),
        f"r={_NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=-4096".encode(),
        f"r={_NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==".encode(),
        f"r={_NONCE}x,s=!,i=4096".encode(),
        f"r={_NONCE}x,i=4096".encode(),
        b"",
        b"\xff\xfe",
    ],
)
def test_scram_when_first_server_message_is_bad_then_corrupt(server_first: bytes) -> None:
    with pytest.raises(CorruptError):
        _scram().answer(server_first)


@pytest.mark.parametrize("server_final", [b"e=unknown-user", b"", b"v=", b"v=!", b"\xff"])
def test_scram_when_last_server_message_is_bad_then_corrupt(server_final: bytes) -> None:
    exchange = _scram()
    exchange.answer(_SERVER_FIRST)

    with pytest.raises(CorruptError):
        exchange.answer(server_final)


def test_scram_when_user_name_has_commas_and_equals_then_escaped() -> None:
    assert _scram(username="a,b=c").first_message().startswith(b"n,,n=a=2Cb=3Dc,r=")
