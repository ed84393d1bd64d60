"""What `rlm processes` and `rlm check` print for people."""

from __future__ import annotations

from dataclasses import replace

from rlm.cli.host.check import check_lines
from rlm.cli.host.processes import process_lines
from rlm.policy.request.canary import CheckResult, CheckRow
from rlm.status.cluster_processes import ProcessStatus
from rlmm.events.registration import NO_BROKER
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden, titled

BROKER = ProcessStatus(role="broker", broker_id=1, address="broker1:9092", is_live=True)
MANAGER = ProcessStatus(
    role="manager",
    broker_id=1,
    address="",
    is_live=True,
    is_ready=True,
    http_address="broker1:8090",
    version="0.4.0",
    heartbeat_age_ms=3_200,
)
GATEWAY = replace(MANAGER, role="gateway", address="gw1:9192", http_address="gw1:8091")
ENDPOINT = "https://s3.eu-central-1.amazonaws.com/acme-kafka-tiered-storage-production-archive"
IPV6 = "[2001:db8:85a3:8d3:1319:8a2e:370:7348]"
UNREADY = replace(
    MANAGER,
    broker_id=2_147_483_647,
    http_address=f"{IPV6}:18090",
    is_ready=False,
    reasons=(
        "metadata is being read: 12345678901 of 98765432109 records",
        f"the store does not respond: Connect timeout on endpoint URL: {ENDPOINT}",
    ),
)
DEAD = replace(
    GATEWAY,
    broker_id=NO_BROKER,
    address="kafka-gateway-with-a-long-host-name.payments.emea.example.com:19192",
    is_live=False,
    heartbeat_age_ms=5 * 86_400_000,
    version="0.4.0.dev17",
    reasons=("no heartbeat for 5 days",),
)
PASSED = CheckRow(
    check="reached",
    target="manager of broker 1 at broker1:8090",
    result=CheckResult.PASSED,
    duration_ms=12,
)
FAILED = CheckRow(
    check="reached",
    target=f"manager of broker 2147483647 at {IPV6}:18090",
    result=CheckResult.FAILED,
    duration_ms=30_040,
    problem="the manager cannot be reached: Connection refused "
    f"(broker_id=2147483647, address={IPV6}:18090). Check rest.listener and "
    "rest.advertised.listener of that host.",
)
SKIPPED = CheckRow(
    check="read back",
    target="kafka-gateway-with-a-long-host-name.payments.emea.example.com:19192",
    result=CheckResult.SKIPPED,
    problem="nothing was stored",
)


def test_processes_when_printed_at_80_columns_then_as_reviewed() -> None:
    few = (BROKER, MANAGER, GATEWAY)
    many = (replace(BROKER, address=f"{IPV6}:19092"), MANAGER, UNREADY, DEAD)

    assert_golden(
        "processes.txt",
        titled(
            {
                "a healthy broker": process_lines(few, width=COLUMNS),
                "IPv6, long host names and problems": process_lines(many, width=COLUMNS),
            }
        ),
    )


def test_check_when_printed_at_80_columns_then_as_reviewed() -> None:
    assert_golden(
        "check.txt",
        titled(
            {
                "passed": check_lines((PASSED,), width=COLUMNS),
                "failed": check_lines((PASSED, FAILED, SKIPPED), width=COLUMNS),
            }
        ),
    )
