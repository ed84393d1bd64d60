"""Retention of a tiered topic can't be set past the policy."""

from __future__ import annotations

import pytest

from rlm.gateway.rewriting.retention_configs import (
    answer_alter_configs,
    answer_incremental_alter_configs,
    pass_alter_configs,
    pass_incremental_alter_configs,
    retention_configs_concern,
)
from rlm.gateway.rewriting.rewrite import Exchange
from rlm.wire.api import alter_configs as whole
from rlm.wire.api import incremental_alter_configs as single
from rlm.wire.error_codes import ErrorCode
from tests.unit.rlm.gateway.gateway_world import GatewayWorld
from tests.unit.rlm.remote_read.remote_world import TIP

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
CONTEXT = GatewayWorld().context()


def change(
    name: str,
    value: str | None,
    *,
    operation: int = SET,
    resource: str = TIP.topic,
    resource_type: int = TOPIC,
) -> single.AlterConfigsResource:
    config = single.AlterableConfig(name=name, config_operation=operation, value=value)
    return single.AlterConfigsResource(
        resource_type=resource_type, resource_name=resource, configs=(config,)
    )


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        (change("retention.ms", "1000"), True),
        (change("retention.bytes", "1000"), True),
        (change("retention.ms", None, operation=DELETE), True),
        (change("retention.ms", "-1"), False),
        (change("segment.bytes", "1000"), False),
        (change("retention.ms", "1000", resource="other"), False),
        (change("retention.ms", "1000", resource_type=BROKER), False),
    ],
)
def test_change_when_it_would_let_the_broker_delete_then_is_refused(
    changed: single.AlterConfigsResource, *, refused: bool
) -> None:
    """R9: AlterConfigs of retention.* on a tiered topic through a gateway."""
    request = single.IncrementalAlterConfigsRequest(resources=(changed,))

    assert retention_configs_concern(request, CONTEXT) == refused
    assert pass_incremental_alter_configs(request, CONTEXT).resources == (
        () if refused else (changed,)
    )


def test_change_when_refused_then_others_in_the_request_are_answered_by_the_broker() -> None:
    """R9."""
    request = single.IncrementalAlterConfigsRequest(
        resources=(change("retention.ms", "1"), change("retention.ms", "1", resource="other"))
    )
    sent = pass_incremental_alter_configs(request, CONTEXT)
    response = single.IncrementalAlterConfigsResponse(
        responses=tuple(
            single.AlterConfigsResourceResponse(
                resource_type=r.resource_type, resource_name=r.resource_name, error_message=None
            )
            for r in sent.resources
        )
    )

    answered = answer_incremental_alter_configs(
        Exchange(version=1, request=request, response=response), CONTEXT
    )

    found = {r.resource_name: (r.error_code, r.error_message) for r in answered.responses}
    assert found["other"] == (0, None)
    code, message = found[TIP.topic]
    assert code == ErrorCode.POLICY_VIOLATION
    assert "rlm topic set" in (message or "")


@pytest.mark.parametrize(
    ("configs", "refused"),
    [
        ({}, True),
        ({"retention.ms": "-1"}, True),
        ({"retention.ms": "-1", "retention.bytes": "5"}, True),
        ({"retention.ms": "-1", "retention.bytes": "-1"}, False),
    ],
)
def test_replacement_when_it_resets_retention_then_is_refused(
    configs: dict[str, str], *, refused: bool
) -> None:
    """R9: the older API resets what it doesn't name."""
    resource = whole.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=TIP.topic,
        configs=tuple(whole.AlterableConfig(name=n, value=v) for n, v in configs.items()),
    )
    request = whole.AlterConfigsRequest(resources=(resource,))
    sent = pass_alter_configs(request, CONTEXT)
    exchange = Exchange(version=2, request=request, response=whole.AlterConfigsResponse())

    assert retention_configs_concern(request, CONTEXT) == refused
    assert bool(sent.resources) is not refused
    (answer,) = answer_alter_configs(exchange, CONTEXT).responses
    assert answer.error_code == ErrorCode.POLICY_VIOLATION
