from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlm.wire.broker_apis import BROKER_APIS
from rlm.wire.schema import Versions
from tests.broker_addresses import KEPT, REWRITTEN
from tests.integration.rlm.wire.kafka_schemas import Schema, schemas
from tests.unit.rlm.wire.message_strategies import ALL_APIS

# The fields of an address; a host without a port belongs to a client or an ACL.
_HOST_AND_PORT = {"Host", "Port"}


def _broker_requests() -> list[Schema]:
    return [each for each in schemas("Request") if "broker" in each.get("listeners", ())]


def _addresses(schema: Schema) -> Iterator[tuple[Versions, ...]]:
    """Yield the versions of structures with a host and a port, and of those around them."""
    shared = {each["name"]: each["fields"] for each in schema.get("commonStructs", ())}

    def walk(fields: list[dict[str, Any]], within: tuple[Versions, ...]) -> Any:
        here = [each for each in fields if each["name"] in _HOST_AND_PORT]
        if {each["name"] for each in here} == _HOST_AND_PORT:
            yield (*within, *(Versions.parse(each["versions"]) for each in here))
        for field in fields:
            kind = field["type"].removeprefix("[]")
            inner = field.get("fields") or shared.get(kind, [])
            yield from walk(inner, (*within, Versions.parse(field["versions"])))

    yield from walk(schema.get("fields", []), ())


def test_broker_apis_when_compared_with_kafkas_schemas_then_the_same() -> None:
    theirs = {
        (
            each["apiKey"],
            each["name"].removesuffix("Request"),
            Versions.parse(each["validVersions"]),
            Versions.parse(each["flexibleVersions"]),
        )
        for each in _broker_requests()
    }

    ours = {(key, each.name, each.versions, each.flexible) for key, each in BROKER_APIS.items()}
    assert ours == theirs


def test_addresses_when_kafkas_schemas_are_walked_then_none_is_overlooked() -> None:
    """R16: each response to clients with a host and port is in a table."""
    served = {each["apiKey"] for each in _broker_requests()}

    found = {
        each["apiKey"]
        for each in schemas("Response")
        if each.get("apiKey") in served
        for versions in _addresses(each)
        if _meet(BROKER_APIS[each["apiKey"]].versions, *versions)
    }

    assert found == set(REWRITTEN) | set(KEPT)


def test_rewritten_tables_when_compared_with_what_is_offered_then_know_every_version() -> None:
    """R16: the gateway offers only versions of responses with addresses that a table covers."""
    assert {key: api.versions for key, api in REWRITTEN.items()} == {
        key: BROKER_APIS[key].versions for key in REWRITTEN
    }


def test_tables_when_compared_with_broker_apis_then_within() -> None:
    for api in ALL_APIS:
        offered = BROKER_APIS[api.key]
        assert (api.name, api.flexible) == (offered.name, offered.flexible)
        assert offered.versions.first <= api.versions.first
        assert api.versions.last == offered.versions.last


def _meet(*ranges: Versions) -> bool:
    return max(each.first for each in ranges) <= min(each.last for each in ranges)
