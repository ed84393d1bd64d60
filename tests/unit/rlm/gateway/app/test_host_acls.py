"""ACLs that name hosts are counted (R20)."""

from __future__ import annotations

import pytest

from rlm.gateway.app.host_acls import count_host_acls
from rlm.wire.api.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import RetriableError
from tests.unit.rlm.broker.scripted_broker import ScriptedBroker


def _broker(*hosts: str, error_code: int = 0) -> ScriptedBroker:
    acls = tuple(AclDescription(principal="User:a", host=host) for host in hosts)

    def answer(request: DescribeAclsRequest) -> DescribeAclsResponse:
        assert request.host_filter is None
        return DescribeAclsResponse(
            error_code=error_code, resources=(DescribeAclsResource(acls=acls),)
        )

    return ScriptedBroker({"DescribeAcls": answer})


def test_host_acls_when_some_name_hosts_then_these_are_counted() -> None:
    assert count_host_acls(_broker("*", "10.0.0.1", "*", "10.0.0.2")) == 2


def test_host_acls_when_there_is_no_authorizer_then_there_are_none() -> None:
    assert count_host_acls(_broker(error_code=ErrorCode.SECURITY_DISABLED)) == 0


def test_host_acls_when_the_right_to_see_them_is_missing_then_says_so() -> None:
    with pytest.raises(RetriableError):
        count_host_acls(_broker(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
