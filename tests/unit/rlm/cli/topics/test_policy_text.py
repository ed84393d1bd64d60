"""What `rlm topic list` prints for people."""

from __future__ import annotations

from dataclasses import replace

from rlm.cli.topics.policy_text import policy_lines
from rlmm.events.policy import OriginalConfig, PolicyState
from tests.unit.rlm.cli.golden_text import COLUMNS, assert_golden, titled
from tests.unit.rlm.cli.long_names import LONG_NAME, LONGEST_NAME
from tests.unit.rlm.policy.views import POLICY

ORIGINALS = (
    OriginalConfig(name="retention.ms", value="604800000"),
    OriginalConfig(name="retention.bytes", value=None),
    OriginalConfig(name="segment.bytes", value="1073741824"),
)
LARGE = replace(
    POLICY,
    topic=LONG_NAME,
    state=PolicyState.DISABLING,
    retention_ms=31_536_000_000,
    retention_bytes=1_125_899_906_842_624,
    local_retention_ms=86_400_000,
    local_retention_bytes=107_374_182_400,
    originals=ORIGINALS,
)
LARGEST = replace(
    LARGE,
    topic=LONGEST_NAME,
    retention_ms=2**63 - 1,
    retention_bytes=2**63 - 1,
    local_retention_ms=2**63 - 1,
    local_retention_bytes=2**63 - 1,
)


def test_topics_when_printed_at_80_columns_then_as_reviewed() -> None:
    assert_golden(
        "topic_list.txt",
        titled(
            {
                "none": policy_lines((), width=COLUMNS),
                "short names": policy_lines((POLICY,), width=COLUMNS),
                "a long name and large numbers": policy_lines((POLICY, LARGE), width=COLUMNS),
                "the longest name and numbers": policy_lines((POLICY, LARGEST), width=COLUMNS),
            }
        ),
    )
