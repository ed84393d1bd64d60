"""Names that lead to brokers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.gateway.endpoints.server_names import ServerNames

_NAMES = ServerNames("broker-{node}.kafka.example.com")


@given(node_id=st.integers(0, 2**31 - 1))
def test_name_of_a_broker_when_read_then_is_that_broker(node_id: int) -> None:
    assert _NAMES.node_of(_NAMES.name_of(node_id)) == node_id
    assert _NAMES.node_of(_NAMES.name_of(node_id).upper()) == node_id


@pytest.mark.parametrize(
    "name",
    [
        "kafka.example.com",
        "broker-.kafka.example.com",
        "broker-01.kafka.example.com",
        "broker--1.kafka.example.com",
        "broker-4294967296.kafka.example.com",
        "broker-1.kafkaXexample.com",
        "broker-1.kafka.example.com.",
        "broker-\u0661.kafka.example.com",
        "",
    ],
)
def test_other_name_when_read_then_is_no_broker(name: str) -> None:
    assert _NAMES.node_of(name) is None
