"""A gateway warns of ACLs that do not apply to its clients as intended (R20)."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AclOperation,
    AclPermissionType,
)
from prometheus_client import CollectorRegistry

from rlm.gateway.app.host_acls import note_host_acls
from rlm.metrics.metrics import Metrics
from rlm.worker.cluster_access import open_bootstrap
from rsm.system_clock import SystemClock
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.security.secured_broker import SecuredBroker, acl


def test_gateway_when_an_acl_names_a_host_then_it_warns_and_counts_it(
    secured: SecuredBroker, secured_host: BrokerHost, caplog: pytest.LogCaptureFixture
) -> None:
    """R20."""
    metrics = Metrics(CollectorRegistry())
    cluster = open_bootstrap(secured_host.config.cluster, SystemClock())
    for_host = acl("any", AclOperation.READ, AclPermissionType.ALLOW, host="10.0.0.1")
    for_all = acl("any", AclOperation.READ, AclPermissionType.ALLOW)

    with secured.with_acls(for_host, for_all), caplog.at_level(logging.WARNING):
        note_host_acls(cluster, metrics)

    assert metrics.registry.get_sample_value("rlm_gateway_host_acls") == 1
    assert "ACLs that name a host" in caplog.text
