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


@pytest.mark.parametrize("text", ["", "a", ":1", "a:", "a:b", "::1:9", "http://a:1", "a:-1"])
def test_parse_host_port_when_malformed_then_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_host_port(text)
