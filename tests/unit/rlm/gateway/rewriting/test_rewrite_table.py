"""The table of rewrites is complete."""

from __future__ import annotations

from rlm.gateway.model.rewrite import ExchangeRewrite
from rlm.gateway.rewriting.rewrite_table import REWRITES
from rlm.wire.api.fetch import FETCH
from rlm.wire.broker_apis import BROKER_APIS
from tests.broker_addresses import REWRITTEN


def test_rewrites_when_a_response_names_brokers_then_it_is_there() -> None:
    """R16: Kafka's schemas and the protocol's table show which responses have addresses."""
    assert REWRITTEN.keys() - {FETCH.key} <= REWRITES.keys()


def test_rewrites_when_a_version_is_offered_then_it_can_be_decoded() -> None:
    """R16: versions are limited to those of the tables; versions that pass contain no address."""
    for key, row in REWRITES.items():
        offered = BROKER_APIS[key].versions
        first = 0 if isinstance(row, ExchangeRewrite) else max(offered.first, row.versions.first)
        assert offered.last <= row.api.versions.last
        assert max(first, offered.first) >= row.api.versions.first
