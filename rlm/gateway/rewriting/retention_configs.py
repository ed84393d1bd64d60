"""Rejects AlterConfigs and IncrementalAlterConfigs that limit a tiered topic's broker retention.

**Data loss:** the broker's retention deletes records whether or not they are stored. The gateway
therefore rejects such a change with POLICY_VIOLATION. The message says how to change a tiered
topic's retention. Changes to other topics in the same request pass. Changes to other settings of
the tiered topic pass in a separate request.

A client without permission to change the topic gets only the broker's refusal. The gateway replaces
a rejected change with a value that the broker cannot accept. The broker first authorizes the
client, and then rejects all changes to that topic. The gateway turns only the broker's error for
that value into the rejection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from rlm.gateway.model.context import GatewayContext
from rlm.gateway.model.rewrite import Exchange
from rlm.wire.api import alter_configs, incremental_alter_configs
from rlm.wire.api.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from rlm.wire.api.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from rlm.wire.error_codes import ErrorCode

_TOPIC = 2  # ConfigResource.Type
_UNLIMITED = "-1"
_SET = 0
_SET_OFF = (_SET, _UNLIMITED)  # operation and value
_RETENTION_KEYS = frozenset({"retention.ms", "retention.bytes"})
# The value is an explanation instead of a number, because brokers log a rejected value.
_UNACCEPTABLE = ("retention.ms", "(refused: the topic is tiered)")
# Brokers return INVALID_CONFIG; with ZooKeeper they return INVALID_REQUEST.
_UNACCEPTED = (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)
_MESSAGE = (
    "cannot change the broker's retention: the topic is tiered. "
    "Change the topic's retention with `rlm topic set`"
)

_Resource = alter_configs.AlterConfigsResource | incremental_alter_configs.AlterConfigsResource

_RequestT = TypeVar("_RequestT", AlterConfigsRequest, IncrementalAlterConfigsRequest)
_ResponseRowT = TypeVar(
    "_ResponseRowT",
    alter_configs.AlterConfigsResourceResponse,
    incremental_alter_configs.AlterConfigsResourceResponse,
)


def can_change_retention_configs(
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest, context: GatewayContext
) -> bool:
    """Return whether any resource must be rejected."""
    return any(_is_refused(resource, context) for resource in request.resources)


def pass_alter_configs(
    _version: int, request: AlterConfigsRequest, context: GatewayContext
) -> AlterConfigsRequest:
    """Return the request to send, with an unacceptable value for each rejected change."""
    name, value = _UNACCEPTABLE
    unacceptable = (alter_configs.AlterableConfig(name=name, value=value),)
    sent = tuple(
        replace(resource, configs=unacceptable) if _is_refused(resource, context) else resource
        for resource in request.resources
    )
    return replace(request, resources=sent)


def pass_incremental_alter_configs(
    _version: int, request: IncrementalAlterConfigsRequest, context: GatewayContext
) -> IncrementalAlterConfigsRequest:
    """Return the request to send, as `pass_alter_configs` does."""
    name, value = _UNACCEPTABLE
    unacceptable = (
        incremental_alter_configs.AlterableConfig(name=name, config_operation=_SET, value=value),
    )
    sent = tuple(
        replace(resource, configs=unacceptable) if _is_refused(resource, context) else resource
        for resource in request.resources
    )
    return replace(request, resources=sent)


def rewrite_alter_configs(
    exchange: Exchange[AlterConfigsRequest, AlterConfigsResponse], _context: GatewayContext
) -> AlterConfigsResponse:
    """Return the broker's response, with its errors about unacceptable values as rejections."""
    response = exchange.response
    refused = _refused(exchange)
    return replace(
        response, responses=tuple(_refuse_if(each, refused) for each in response.responses)
    )


def rewrite_incremental_alter_configs(
    exchange: Exchange[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse],
    _context: GatewayContext,
) -> IncrementalAlterConfigsResponse:
    """Return the response with rejections, as `rewrite_alter_configs` does."""
    response = exchange.response
    refused = _refused(exchange)
    return replace(
        response, responses=tuple(_refuse_if(each, refused) for each in response.responses)
    )


def _refused(exchange: Exchange[_RequestT, Any]) -> frozenset[tuple[int, str]]:
    """Return the resources whose changes the gateway replaced, except duplicates.

    The broker rejects duplicates without authorizing the client.
    """
    asked: Iterable[_Resource] = exchange.request.resources
    sent: Iterable[_Resource] = (exchange.sent or exchange.request).resources
    count = Counter((each.resource_type, each.resource_name) for each in asked)
    return frozenset(
        (resource.resource_type, resource.resource_name)
        for resource, passed in zip(asked, sent, strict=True)
        if resource != passed and count[resource.resource_type, resource.resource_name] == 1
    )


def _refuse_if(response: _ResponseRowT, refused: frozenset[tuple[int, str]]) -> _ResponseRowT:
    resource = response.resource_type, response.resource_name
    if resource not in refused or response.error_code not in _UNACCEPTED:
        return response
    return replace(response, error_code=ErrorCode.POLICY_VIOLATION, error_message=_MESSAGE)


def _is_refused(resource: _Resource, context: GatewayContext) -> bool:
    if resource.resource_type != _TOPIC or resource.resource_name not in context.topics.managed:
        return False
    if isinstance(resource, alter_configs.AlterConfigsResource):
        # AlterConfigs replaces all settings: it resets an omitted one to the broker's default.
        kept = {config.name for config in resource.configs if config.value == _UNLIMITED}
        return not kept >= _RETENTION_KEYS
    return any(
        config.name in _RETENTION_KEYS and (config.config_operation, config.value) != _SET_OFF
        for config in resource.configs
    )
