from __future__ import annotations

import pytest

from rlm.broker.topics.default_retention import read_default_retention
from rlm.wire.api.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import CorruptError, RetriableError
from tests.unit.rlm.broker.scripted_broker import ScriptedBroker

KAFKA = {"log.retention.hours": "168", "log.retention.bytes": "-1"}


def broker(values: dict[str, str | None], error_code: int = 0) -> ScriptedBroker:
    rows = tuple(DescribeConfigsResourceResult(name=n, value=v) for n, v in values.items())

    def answer(request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        assert request.resources[0].resource_name == "1"
        result = DescribeConfigsResult(error_code=error_code, configs=rows)
        return DescribeConfigsResponse(results=(result,))

    return ScriptedBroker({"DescribeConfigs": answer})


@pytest.mark.parametrize(
    ("values", "expected_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.ms": None, "log.retention.minutes": None}, 604_800_000),
        ({"log.retention.minutes": "2"}, 120_000),
        ({"log.retention.ms": "5", "log.retention.minutes": "2"}, 5),
        ({"log.retention.ms": "-1"}, -1),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_default_retention_when_returned_in_units_then_the_finest_wins_in_ms(
    values: dict[str, str | None], expected_ms: int
) -> None:
    found = read_default_retention(broker({**KAFKA, **values}), 1)

    assert (found.retention_ms, found.retention_bytes) == (expected_ms, -1)


def test_default_retention_when_rights_are_missing_then_worth_asking_again() -> None:
    with pytest.raises(RetriableError):
        read_default_retention(broker({}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED), 1)


def test_default_retention_when_nothing_is_returned_then_not_guessed() -> None:
    with pytest.raises(CorruptError):
        read_default_retention(broker({"log.retention.bytes": "-1"}), 1)
