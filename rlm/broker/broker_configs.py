"""Reads a broker's own settings, which apply to all its partitions and clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rlm.broker.errors import error_of
from rlm.wire.api.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from rlm.wire.connection import Requester
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import CorruptError, RetriableError

TRANSACTION_MAX_TIMEOUT_MS = "transaction.max.timeout.ms"

_BROKER_RESOURCE = 4


def read_broker_configs(broker: Requester, node_id: int, keys: Iterable[str]) -> Mapping[str, str]:
    """Read the settings `keys` of the broker `node_id`; omit those without a value.

    `broker` is a connection to that broker. Raises RetriableError if the principal lacks
    DescribeConfigs on the cluster, and the errors of `Requester.request`.
    """
    resource = DescribeConfigsResource(
        resource_type=_BROKER_RESOURCE,
        resource_name=str(node_id),
        configuration_keys=tuple(keys),
    )
    response = broker.request(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=(resource,)))
    if not response.results:
        raise RetriableError(
            "cannot read the broker's settings: the response lacks them", node_id=node_id
        )
    row = response.results[0]
    if row.error_code != ErrorCode.NONE:
        raise error_of(row.error_code, node_id=node_id, reason=row.error_message)
    return {each.name: each.value for each in row.configs if each.value is not None}


def read_transaction_max_timeout_ms(broker: Requester, node_id: int) -> int:
    """Read the longest transaction timeout that the broker allows.

    Raises CorruptError if the value is missing or not a number, and the errors of
    `read_broker_configs`.
    """
    values = read_broker_configs(broker, node_id, (TRANSACTION_MAX_TIMEOUT_MS,))
    try:
        return int(values[TRANSACTION_MAX_TIMEOUT_MS])
    except (ValueError, LookupError) as error:
        raise CorruptError(
            f"cannot read the broker's {TRANSACTION_MAX_TIMEOUT_MS}: it is missing or not a number",
            node_id=node_id,
        ) from error
