"""AlterConfigs and IncrementalAlterConfigs: the broker's retention of a tiered topic stays off.

A retention that the broker applies would delete what is not stored yet, and never what is. So a
change of it is answered with POLICY_VIOLATION, and the message says how to change a tiered topic's
retention. Other topics' changes in the same request pass, and so do other settings' of this one
in a request of its own.

Who may not change the topic is told so by the broker, and learns nothing else: in the place of what
is refused the broker gets a value that it cannot take. It authorizes first, and changes nothing of
a topic of which one value is no good; only the error for that becomes the refusal.
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
# In the place of a number: brokers name a value that they don't take in their log.
_UNACCEPTABLE = ("retention.ms", "(refused: the topic is tiered)")
# The second is said by brokers with ZooKeeper.
_UNACCEPTED = (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)
_MESSAGE = "the topic is tiered: change its retention with `rlm topic set`"

_Resource = alter_configs.AlterConfigsResource | incremental_alter_configs.AlterConfigsResource

_RequestT = TypeVar("_RequestT", AlterConfigsRequest, IncrementalAlterConfigsRequest)
_AnswerT = TypeVar(
    "_AnswerT",
    alter_configs.AlterConfigsResourceResponse,
    incremental_alter_configs.AlterConfigsResourceResponse,
)


def retention_configs_concern(
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest, context: GatewayContext
) -> bool:
    """Whether any resource must be refused."""
    return any(_is_refused(resource, context) for resource in request.resources)


def pass_alter_configs(
    request: AlterConfigsRequest, context: GatewayContext
) -> AlterConfigsRequest:
    """What is sent on: what is refused so that it cannot be applied."""
    name, value = _UNACCEPTABLE
    unacceptable = (alter_configs.AlterableConfig(name=name, value=value),)
    sent = tuple(
        replace(resource, configs=unacceptable) if _is_refused(resource, context) else resource
        for resource in request.resources
    )
    return replace(request, resources=sent)


def pass_incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: GatewayContext
) -> IncrementalAlterConfigsRequest:
    """As `pass_alter_configs`."""
    name, value = _UNACCEPTABLE
    unacceptable = (
        incremental_alter_configs.AlterableConfig(name=name, config_operation=_SET, value=value),
    )
    sent = tuple(
        replace(resource, configs=unacceptable) if _is_refused(resource, context) else resource
        for resource in request.resources
    )
    return replace(request, resources=sent)


def answer_alter_configs(
    exchange: Exchange[AlterConfigsRequest, AlterConfigsResponse], _context: GatewayContext
) -> AlterConfigsResponse:
    """The broker's answers, but for refusals of what it could not take."""
    response = exchange.response
    refused = _refused(exchange)
    return replace(response, responses=tuple(_answer(each, refused) for each in response.responses))


def answer_incremental_alter_configs(
    exchange: Exchange[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse],
    _context: GatewayContext,
) -> IncrementalAlterConfigsResponse:
    """As `answer_alter_configs`."""
    response = exchange.response
    refused = _refused(exchange)
    return replace(response, responses=tuple(_answer(each, refused) for each in response.responses))


def _refused(exchange: Exchange[_RequestT, Any]) -> frozenset[tuple[int, str]]:
    """What was sent on otherwise than it came.

    Not what is named twice: that is invalid without a look at who asks.
    """
    asked: Iterable[_Resource] = exchange.request.resources
    sent: Iterable[_Resource] = (exchange.sent or exchange.request).resources
    count = Counter((each.resource_type, each.resource_name) for each in asked)
    return frozenset(
        (resource.resource_type, resource.resource_name)
        for resource, passed in zip(asked, sent, strict=True)
        if resource != passed and count[resource.resource_type, resource.resource_name] == 1
    )


def _answer(answer: _AnswerT, refused: frozenset[tuple[int, str]]) -> _AnswerT:
    resource = answer.resource_type, answer.resource_name
    if resource not in refused or answer.error_code not in _UNACCEPTED:
        return answer
    return replace(answer, error_code=ErrorCode.POLICY_VIOLATION, error_message=_MESSAGE)


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
