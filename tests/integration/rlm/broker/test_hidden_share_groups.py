"""A real broker omits share groups that the user may not describe, and reports this right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # unmarked

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.groups.cluster_share_groups import ClusterShareGroups
from rlm.broker.groups.share_groups import ShareGroups
from rlm.facts.share_group_start import HiddenShareGroupsError, ShareGroupStart
from rlm.wire.connection import ConnectionSettings, Connector
from rlm.wire.security.settings import SaslSettings, SecuritySettings
from rsm.segment.errors import RetriableError
from rsm.system_clock import SystemClock
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.integration.rlm.gateway.security.secured_broker import (
    PASSWORD,
    USER,
    SecuredBroker,
    allowed_on_cluster,
    describe_denied,
    secured_broker,
)
from tests.services.kafka_runtime import run_tool
from tests.services.provider import ServiceProvider
from tests.services.waiting import wait_until

_TOPIC, _GROUP = "shared", "sharers"
_NO_CLUSTER = describe_denied(ResourceType.BROKER, "kafka-cluster")
_NO_GROUP = describe_denied(ResourceType.GROUP, _GROUP)
_DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def secured(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    """A broker with a topic, and a share group that begins at offset 0 of the topic."""
    with secured_broker(services, Path(tmp_path_factory.mktemp("secured"))) as secured:
        secured.cluster.create_topic(_TOPIC)
        run_tool(
            "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
            *("--bootstrap-server", secured.cluster.bootstrap_servers, "--group", _GROUP),
            *("--topic", _TOPIC, "--reset-offsets", "--to-earliest", "--execute"),
        )
        yield secured


def _groups(secured: SecuredBroker, *, accepts_hidden: bool = False) -> ShareGroups:
    """Return a view of the share groups for USER, whose rights the tests restrict."""
    sasl = SaslSettings(mechanism="PLAIN", username=USER, password=PASSWORD)
    settings = ConnectionSettings(security=SecuritySettings(sasl=sasl))
    clock = SystemClock()
    bootstrap = Bootstrap([("127.0.0.1", secured.ports["LOGIN"])], Connector(settings, clock))
    return ClusterShareGroups(bootstrap, clock, accepts_hidden=accepts_hidden)


def _starts(groups: ShareGroups) -> list[ShareGroupStart]:
    return list(groups.starts().succeeded.values())


def _raised(groups: ShareGroups) -> type[Exception] | None:
    try:
        groups.starts()
    except RetriableError as error:
        return type(error)
    return None


def test_starts_when_the_user_may_describe_the_cluster_then_the_group_is_there(
    secured: SecuredBroker,
) -> None:
    assert _starts(_groups(secured)) == [ShareGroupStart(group=_GROUP, offset=0)]


def test_starts_when_describe_on_the_cluster_is_taken_away_then_raises_until_it_is_back(
    secured: SecuredBroker,
) -> None:
    """R8. The broker applies an ACL a moment after its creation."""
    groups = _groups(secured)
    with secured.with_acls(_NO_CLUSTER, _NO_GROUP):
        wait_until(
            lambda: _raised(groups) is HiddenShareGroupsError,
            describe=lambda: "the ACL that takes Describe away applies",
        )
    wait_until(
        lambda: _raised(groups) is None,
        describe=lambda: "the ACL that takes Describe away is gone",
    )


def test_starts_when_the_risk_is_accepted_then_the_broker_omits_the_group(
    secured: SecuredBroker,
) -> None:
    """R8: the broker reports no error, which is why the check is needed."""
    groups = _groups(secured, accepts_hidden=True)
    with secured.with_acls(_NO_CLUSTER, _NO_GROUP):
        wait_until(
            lambda: _raised(groups) is None and _starts(groups) == [],
            describe=lambda: "the broker omits the share group",
        )


def test_trim_when_share_groups_may_be_hidden_then_none_until_the_risk_is_accepted(
    secured: SecuredBroker, tmp_path: Path, topic_name: str
) -> None:
    """Scenario 123: nothing is trimmed, the status shows it; a setting accepts the risk."""
    settings = {
        "bootstrap.servers": f"127.0.0.1:{secured.ports['LOGIN']}",
        "client.security.protocol": "SASL_PLAINTEXT",
        "client.sasl.mechanism": "PLAIN",
        "client.sasl.username": USER,
        "client.sasl.password": PASSWORD,
    }
    host = BrokerHost(
        tmp_path, secured.cluster, metadata_topic=f"{topic_name}-metadata", settings=settings
    )
    log = TieredLog.create(secured.cluster, topic_name, host.store)
    log.produce(3)
    with secured.with_acls(allowed_on_cluster(), _NO_CLUSTER, _NO_GROUP):
        with host.running():
            host.wait_ready()
            host.rlm("topic", "set", topic_name, "--local-retention-ms", "1")
            wait_until(
                lambda: _reason(host, topic_name) == "share_groups_hidden",
                _DEADLINE_S,
                lambda: f"the trim waits for the right: {host.report(topic_name)}",
            )
            problem = host.report(topic_name)["trim_blocked"]["problem"]
            alarm = host.metrics("rlm_trim_blocked")
            local_start_offset = log.local_start_offset()
        host.set(**{"remote.local.trim.accept.hidden.share.groups": "true"})
        with host.running():
            wait_until(
                lambda: log.local_start_offset() > 0,
                _DEADLINE_S,
                lambda: f"it is trimmed: {host.report(topic_name)}",
            )

    assert local_start_offset == 0
    assert alarm == {"manager": 1.0}
    assert "lacks Describe on the cluster" in problem
    assert "remote.local.trim.accept.hidden.share.groups" in problem
    assert host.log_path.read_text().count("share groups are not known") == 1


def _reason(host: BrokerHost, topic: str) -> str:
    held = host.report(topic).get("trim_blocked") or {}
    return str(held.get("reason", ""))
