"""The rows of `rlm check` about a bucket's lifecycle rules."""

from __future__ import annotations

import pytest

from rlm.cli.host.check import rule_rows, store_rule_rows
from rlm.policy.request.canary import CheckResult
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.storage.lifecycle_rules import LifecycleRule
from tests.unit.rlm.ruled_storage import FOREIGN, OURS, RuledStorage


@pytest.mark.parametrize(
    ("rules", "result", "problem"),
    [
        ((OURS,), CheckResult.FAILED, "rule 'all' for the whole bucket: deletes objects 30 days"),
        ((FOREIGN,), CheckResult.PASSED, ""),
        ((), CheckResult.PASSED, ""),
    ],
)
def test_row_when_the_bucket_has_rules_then_fails_for_those_that_take_objects_of_rlm(
    rules: tuple[LifecycleRule, ...], result: CheckResult, problem: str
) -> None:
    (row,) = rule_rows(RuledStorage(*rules), "s3", "rlm/")

    assert (row.result, row.problem.startswith(problem)) == (result, True)


def test_row_when_the_rules_may_not_be_read_then_skipped_with_the_reason() -> None:
    storage = RuledStorage(problem=RetriableError("the store does not permit this"))

    (row,) = rule_rows(storage, "s3", "")

    assert row.result is CheckResult.SKIPPED
    assert "the store does not permit this" in row.problem


def test_rows_when_no_store_is_configured_then_none() -> None:
    assert store_rule_rows(None) == ()


def test_row_when_the_stores_configuration_is_invalid_then_fails() -> None:
    """The check must not skip a configuration that a manager cannot use."""
    storage = RuledStorage(
        problem=InvalidConfigError("the bucket does not exist", bucket="segmets")
    )

    (row,) = rule_rows(storage, "s3", "")

    assert row.result is CheckResult.FAILED
    assert "the bucket does not exist (bucket=segmets)" in row.problem
