from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.config.values import HostPort, parse_host_port

HOSTS = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True) | st.ip_addresses().map(str)


@given(host=HOSTS, port=st.integers(0, 65535))
def test_host_port_when_printed_and_parsed_then_is_the_same(host: str, port: int) -> None:
    address = HostPort(host=host, port=port)

    assert parse_host_port(str(address)) == address


@pytest.mark.parametrize(
    ("address", "is_loopback"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("[::1]:1", True),
        ("LocalHost:1", True),
        ("10.0.0.1:1", False),
        ("[fe80::1%eth0]:1", False),
        ("localhost.example:1", False),
        ("0.0.0.0:1", False),
        ("[::ffff:127.0.0.1]:1", True),
        ("[::ffff:10.0.0.1]:1", False),
        ("localhost.:1", True),
        ("ip6-localhost:1", True),
        ("a.localhost:1", True),
    ],
)
def test_host_port_when_each_host_finds_itself_there_then_is_loopback(
    address: str, *, is_loopback: bool
) -> None:
    assert parse_host_port(address).is_loopback is is_loopback


@pytest.mark.parametrize("text", ["", "a", ":1", "a:", "a:b", "::1:9", "http://a:1", "a:-1"])
def test_parse_host_port_when_malformed_then_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_host_port(text)


@pytest.mark.parametrize(
    ("address", "is_unspecified"),
    [
        ("0.0.0.0:1", True),
        ("[::]:1", True),
        ("[::ffff:0.0.0.0]:1", True),
        ("10.0.0.1:1", False),
        ("a:1", False),
    ],
)
def test_host_port_when_it_is_a_wildcard_then_unspecified(
    address: str, *, is_unspecified: bool
) -> None:
    assert parse_host_port(address).is_unspecified is is_unspecified
