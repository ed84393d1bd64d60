"""Clients cannot limit the broker's retention of a tiered topic through a gateway."""

from __future__ import annotations

import pytest

from rlm.gateway.model.rewrite import Exchange
from rlm.gateway.rewriting.retention_configs import (
    can_change_retention_configs,
    pass_alter_configs,
    pass_incremental_alter_configs,
    rewrite_alter_configs,
    rewrite_incremental_alter_configs,
)
from rlm.wire.api import alter_configs as whole
from rlm.wire.api import incremental_alter_configs as single
from rlm.wire.error_codes import ErrorCode
from tests.remote_world import TIP
from tests.unit.rlm.gateway.gateway_world import GatewayWorld

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
def test_change_when_it_would_let_the_broker_delete_then_is_not_sent(
    changed: single.AlterConfigsResource, *, refused: bool
) -> None:
    """R9: AlterConfigs of retention.* on a tiered topic through a gateway."""
    request = single.IncrementalAlterConfigsRequest(resources=(changed,))

    assert can_change_retention_configs(request, CONTEXT) == refused
    (sent,) = pass_incremental_alter_configs(1, request, CONTEXT).resources
    if refused:
        (config,) = sent.configs
        assert (config.name, config.config_operation) == ("retention.ms", SET)
        assert config.value is not None
        assert not config.value.lstrip("-").isdigit()
    else:
        assert sent == changed


def answered(
    resources: tuple[single.AlterConfigsResource, ...], *codes: int
) -> list[tuple[str, int, str | None]]:
    """Return the client's response, if the broker answers the changed request with these errors."""
    request = single.IncrementalAlterConfigsRequest(resources=resources)
    sent = pass_incremental_alter_configs(1, request, CONTEXT)
    response = single.IncrementalAlterConfigsResponse(
        responses=tuple(
            single.AlterConfigsResourceResponse(
                resource_type=r.resource_type,
                resource_name=r.resource_name,
                error_code=code,
                error_message=None,
            )
            for r, code in zip(sent.resources, codes, strict=True)
        )
    )
    exchange = Exchange(version=1, request=request, response=response, sent=sent)
    found = rewrite_incremental_alter_configs(exchange, CONTEXT).responses
    return [(r.resource_name, r.error_code, r.error_message) for r in found]


def test_change_when_refused_then_others_in_the_request_are_answered_by_the_broker() -> None:
    """R9."""
    resources = (change("retention.ms", "1"), change("retention.ms", "1", resource="other"))

    (name, code, message), other = answered(resources, ErrorCode.INVALID_CONFIG, 0)

    assert other == ("other", 0, None)
    assert (name, code) == (TIP.topic, ErrorCode.POLICY_VIOLATION)
    assert "rlm topic set" in (message or "")


@pytest.mark.parametrize(
    "code",
    [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 41],
)
def test_change_when_the_broker_has_another_error_then_that_is_the_answer(code: int) -> None:
    """A user that may not change a topic does not learn that it is tiered."""
    assert answered((change("retention.ms", "1"),), code) == [(TIP.topic, code, None)]


def test_change_when_named_twice_then_the_brokers_answer_holds() -> None:
    """The broker rejects duplicates before it authorizes the client."""
    twice = (change("retention.ms", "1"),) * 2

    found = answered(twice, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST)

    assert [code for _, code, _ in found] == [ErrorCode.INVALID_REQUEST] * 2


def test_change_when_the_topic_was_not_tiered_as_it_was_sent_then_is_not_called_refused() -> None:
    request = single.IncrementalAlterConfigsRequest(resources=(change("retention.ms", "x"),))
    response = single.IncrementalAlterConfigsResponse(
        responses=(
            single.AlterConfigsResourceResponse(
                resource_type=TOPIC,
                resource_name=TIP.topic,
                error_code=ErrorCode.INVALID_CONFIG,
                error_message="no number",
            ),
        )
    )

    exchange = Exchange(version=1, request=request, response=response, sent=request)

    assert rewrite_incremental_alter_configs(exchange, CONTEXT) == response


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
    """R9: the older API resets every setting that the request omits."""
    resource = whole.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=TIP.topic,
        configs=tuple(whole.AlterableConfig(name=n, value=v) for n, v in configs.items()),
    )
    request = whole.AlterConfigsRequest(resources=(resource,))
    sent = pass_alter_configs(2, request, CONTEXT)
    response = whole.AlterConfigsResponse(
        responses=(
            whole.AlterConfigsResourceResponse(
                resource_type=TOPIC,
                resource_name=TIP.topic,
                error_code=ErrorCode.INVALID_CONFIG,
                error_message=None,
            ),
        )
    )
    exchange = Exchange(version=2, request=request, response=response, sent=sent)

    assert can_change_retention_configs(request, CONTEXT) == refused
    assert (sent != request) == refused
    (answer,) = rewrite_alter_configs(exchange, CONTEXT).responses
    expected = ErrorCode.POLICY_VIOLATION if refused else ErrorCode.INVALID_CONFIG
    assert answer.error_code == expected
