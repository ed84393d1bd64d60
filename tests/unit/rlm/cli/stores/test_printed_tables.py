"""What `rlm storage check` and `rlm plugins list` print for people."""

from __future__ import annotations

from rlm.cli.stores.plugins import plugin_lines
from rlm.cli.stores.storage import storage_lines
from rsm.storage.probe import ProbeResult, ProbeStep
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden, titled

REACHED = ProbeStep(verb="reach the store", result=ProbeResult.OK, duration_ms=41.4)
REFUSED = ProbeStep(
    verb="create a small object",
    result=ProbeResult.FAILED,
    duration_ms=12_345.6,
    problem="the store refuses the request: AccessDenied: User: "
    "arn:aws:sts::123456789012:assumed-role/kafka-tiered-storage/i-0abc is not authorized to "
    "perform: s3:PutObject on resource: "
    "arn:aws:s3:::acme-kafka-tiered-storage-production-archive/emea/rlm-probe-0123456789 "
    "(bucket=acme-kafka-tiered-storage-production-archive)",
)
UNTRIED = ProbeStep(verb="check that it no longer exists", result=ProbeResult.NOT_TRIED)
SHORT = {
    "kind": "storage",
    "name": "tape",
    "class": "acme_tape.store:Tape",
    "distribution": "acme-tape",
    "version": "1.5",
}
LONG = {
    "kind": "layout",
    "name": "columnar-by-account",
    "class": "acme_kafka_tiered_storage.layouts.columnar.by_account:ColumnarByAccountLayout",
    "distribution": "acme-kafka-tiered-storage-columnar-layouts",
    "version": "2026.11.27.post1",
}
UNKNOWN = {**SHORT, "distribution": None, "version": None}


def test_storage_check_when_printed_at_80_columns_then_as_reviewed() -> None:
    assert_golden(
        "storage_check.txt",
        titled(
            {
                "passed": storage_lines((REACHED,), width=COLUMNS),
                "refused": storage_lines((REACHED, REFUSED, UNTRIED), width=COLUMNS),
            }
        ),
    )


def test_plugins_when_printed_at_80_columns_then_as_reviewed() -> None:
    assert_golden(
        "plugins_list.txt",
        titled(
            {
                "none": plugin_lines((), width=COLUMNS),
                "short names": plugin_lines((SHORT, UNKNOWN), width=COLUMNS),
                "long names": plugin_lines((SHORT, LONG), width=COLUMNS),
            }
        ),
    )
