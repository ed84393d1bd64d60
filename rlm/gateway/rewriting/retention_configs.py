"""AlterConfigs and IncrementalAlterConfigs: the broker's retention of a tiered topic stays off.

A retention that the broker applies would delete what is not stored yet, and never what is. So a
change of it is answered with POLICY_VIOLATION, and the message says how to change a tiered topic's
retention. Other topics' changes in the same request pass, and so do other settings' of this one
in a request of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rlm.gateway.context import GatewayContext
from rlm.gateway.rewriting.rewrite import Exchange
from rlm.wire.api import alter_configs, incremental_alter_configs
from rlm.wire.api.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from rlm.wire.api.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from rlm.wire.error_codes import ErrorCode

_TOPIC = 2  # ConfigResource.Type
_UNLIMITED = "-1"
_SET_OFF = (0, _UNLIMITED)  # operation and value
_RETENTION_KEYS = frozenset({"retention.ms", "retention.bytes"})
_MESSAGE = "the topic is tiered: change its retention with `rlm topic set`"

_Resource = alter_configs.AlterConfigsResource | incremental_alter_configs.AlterConfigsResource

_Answer = (
    alter_configs.AlterConfigsResourceResponse
    | incremental_alter_configs.AlterConfigsResourceResponse
)


def retention_configs_concern(
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest, context: GatewayContext
) -> bool:
    """Whether any resource must be refused."""
    return any(_is_refused(resource, context) for resource in request.resources)


def pass_alter_configs(
    request: AlterConfigsRequest, context: GatewayContext
) -> AlterConfigsRequest:
    """What is sent on: all but what is refused."""
    kept = tuple(r for r in request.resources if not _is_refused(r, context))
    return replace(request, resources=kept)


def pass_incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: GatewayContext
) -> IncrementalAlterConfigsRequest:
    """As `pass_alter_configs`."""
    kept = tuple(r for r in request.resources if not _is_refused(r, context))
    return replace(request, resources=kept)


def answer_alter_configs(
    exchange: Exchange[AlterConfigsRequest, AlterConfigsResponse], _context: GatewayContext
) -> AlterConfigsResponse:
    """The broker's answers, and refusals of what it was not asked."""
    response = exchange.response
    refused = tuple(
        alter_configs.AlterConfigsResourceResponse(
            error_code=ErrorCode.POLICY_VIOLATION,
            error_message=_MESSAGE,
            resource_type=resource_type,
            resource_name=name,
        )
        for resource_type, name in _unasked(exchange.request.resources, response.responses)
    )
    return replace(response, responses=(*response.responses, *refused))


def answer_incremental_alter_configs(
    exchange: Exchange[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse],
    _context: GatewayContext,
) -> IncrementalAlterConfigsResponse:
    """As `answer_alter_configs`."""
    response = exchange.response
    refused = tuple(
        incremental_alter_configs.AlterConfigsResourceResponse(
            error_code=ErrorCode.POLICY_VIOLATION,
            error_message=_MESSAGE,
            resource_type=resource_type,
            resource_name=name,
        )
        for resource_type, name in _unasked(exchange.request.resources, response.responses)
    )
    return replace(response, responses=(*response.responses, *refused))


def _unasked(asked: Iterable[_Resource], answers: Iterable[_Answer]) -> tuple[tuple[int, str], ...]:
    answered = {(answer.resource_type, answer.resource_name) for answer in answers}
    resources = ((resource.resource_type, resource.resource_name) for resource in asked)
    return tuple(resource for resource in resources if resource not in answered)


def _is_refused(resource: _Resource, context: GatewayContext) -> bool:
    if resource.resource_type != _TOPIC or resource.resource_name not in context.topics.managed:
        return False
    if isinstance(resource, alter_configs.AlterConfigsResource):
        # All settings are replaced: one that is not named is reset to the broker's retention.
        kept = {config.name for config in resource.configs if config.value == _UNLIMITED}
        return not kept >= _RETENTION_KEYS
    return any(
        config.name in _RETENTION_KEYS and (config.config_operation, config.value) != _SET_OFF
        for config in resource.configs
    )
