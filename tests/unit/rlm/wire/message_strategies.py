"""Random messages of any table and version, for the tests of the codec."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from rlm.wire.api.alter_configs import ALTER_CONFIGS
from rlm.wire.api.api_versions import API_VERSIONS
from rlm.wire.api.delete_records import DELETE_RECORDS
from rlm.wire.api.describe_acls import DESCRIBE_ACLS
from rlm.wire.api.describe_cluster import DESCRIBE_CLUSTER
from rlm.wire.api.describe_configs import DESCRIBE_CONFIGS
from rlm.wire.api.describe_share_group_offsets import DESCRIBE_SHARE_GROUP_OFFSETS
from rlm.wire.api.fetch import FETCH
from rlm.wire.api.find_coordinator import FIND_COORDINATOR
from rlm.wire.api.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from rlm.wire.api.list_groups import LIST_GROUPS
from rlm.wire.api.list_offsets import LIST_OFFSETS
from rlm.wire.api.metadata import METADATA
from rlm.wire.api.offset_for_leader_epoch import OFFSET_FOR_LEADER_EPOCH
from rlm.wire.api.produce import PRODUCE
from rlm.wire.api.sasl_authenticate import SASL_AUTHENTICATE
from rlm.wire.api.sasl_handshake import SASL_HANDSHAKE
from rlm.wire.api.share_acknowledge import SHARE_ACKNOWLEDGE
from rlm.wire.api.share_fetch import SHARE_FETCH
from rlm.wire.schema import Api, ArrayOf, FieldSchema, Message, WireType, fields_of
from tests.unit.rlm.wire.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS

ALL_APIS: tuple[Api[Any, Any], ...] = (
    ALTER_CONFIGS,
    API_VERSIONS,
    DELETE_RECORDS,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    FIND_COORDINATOR,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
)

# Every version of every message: (id, message type, version, flexible).
ALL_MESSAGES = [
    (f"{message.__name__}-v{version}", message, version, version in api.flexible)
    for api in ALL_APIS
    for message in (api.request, api.response)
    for version in range(api.versions.first, api.versions.last + 1)
]

_FIRST_UNKNOWN_TAG, _LAST_UNKNOWN_TAG = 200, 2**31 - 2  # Kafka uses 2**31 - 1 itself
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_PRIMITIVES: dict[WireType, st.SearchStrategy[object]] = {
    WireType.BOOLEAN: st.booleans(),
    WireType.INT8: st.integers(-(2**7), 2**7 - 1),
    WireType.INT16: st.integers(-(2**15), 2**15 - 1),
    WireType.INT32: st.integers(-(2**31), 2**31 - 1),
    WireType.INT64: st.integers(-(2**63), 2**63 - 1),
    WireType.UUID: st.uuids(),
    WireType.STRING: _TEXTS,
    WireType.HEADER_STRING: _TEXTS,
    WireType.BYTES: st.binary(max_size=200),
    WireType.RECORDS: st.binary(max_size=200),
}


def messages(
    message_type: type[Message],
    version: int,
    *,
    flexible: bool,
    unknown_tags: bool = True,
    special: Mapping[str, st.SearchStrategy[object]] = MappingProxyType({}),
) -> st.SearchStrategy[Message]:
    """Generate messages of this version; `special` has strategies for fields, by their names."""

    def values(field: FieldSchema) -> st.SearchStrategy[object]:
        if field.name in special:
            return special[field.name]
        if field.name.endswith("_ms"):
            return _PRIMITIVES[WireType.INT32]  # kio rounds durations that are much longer
        if isinstance(field.type, ArrayOf):
            element = field.type.element
            found: st.SearchStrategy[object] = st.lists(single(element), max_size=3).map(tuple)
        else:
            found = single(field.type)
        return st.none() | found if version in field.nullable else found

    def single(kind: WireType | type[Message]) -> st.SearchStrategy[object]:
        return _PRIMITIVES[kind] if isinstance(kind, WireType) else built(kind)

    def built(kind: type[Message]) -> st.SearchStrategy[Message]:
        arguments = {f.name: values(f) for f in fields_of(kind) if version in f.versions}
        if flexible and unknown_tags:
            tags = st.dictionaries(
                st.integers(_FIRST_UNKNOWN_TAG, _LAST_UNKNOWN_TAG),
                st.binary(max_size=8),
                max_size=2,
            )
            arguments["unknown_tags"] = tags.map(lambda each: tuple(sorted(each.items())))
        return st.builds(kind, **arguments)

    return built(message_type)
