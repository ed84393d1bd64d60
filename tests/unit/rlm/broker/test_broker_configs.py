"""A broker's own settings, as DescribeConfigs returns them."""

from __future__ import annotations

import pytest

from rlm.broker.broker_configs import read_broker_configs, read_transaction_max_timeout_ms
from rlm.wire.api.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import CorruptError, RetriableError
from tests.unit.rlm.broker.scripted_broker import ScriptedBroker

KEY = "transaction.max.timeout.ms"


def broker(values: dict[str, str | None], error_code: int = 0) -> ScriptedBroker:
    rows = tuple(DescribeConfigsResourceResult(name=n, value=v) for n, v in values.items())
    result = DescribeConfigsResult(error_code=error_code, configs=rows)
    return ScriptedBroker({"DescribeConfigs": lambda _: DescribeConfigsResponse(results=(result,))})


def test_broker_configs_when_read_then_asks_for_these_and_omits_unset_ones() -> None:
    asked = broker({"a": "1", "b": None})

    found = read_broker_configs(asked, 3, ("a", "b"))

    ((_, request),) = asked.asked
    assert isinstance(request, DescribeConfigsRequest)
    (resource,) = request.resources
    assert found == {"a": "1"}
    assert (resource.resource_name, resource.configuration_keys) == ("3", ("a", "b"))


def test_transaction_timeout_when_read_then_the_brokers_value() -> None:
    assert read_transaction_max_timeout_ms(broker({KEY: "60000"}), 1) == 60_000


@pytest.mark.parametrize("values", [{}, {KEY: None}, {KEY: "soon"}])
def test_transaction_timeout_when_it_is_no_number_then_not_guessed(
    values: dict[str, str | None],
) -> None:
    with pytest.raises(CorruptError):
        read_transaction_max_timeout_ms(broker(values), 1)


def test_transaction_timeout_when_rights_are_missing_then_worth_asking_again() -> None:
    with pytest.raises(RetriableError):
        read_transaction_max_timeout_ms(broker({}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED), 1)
