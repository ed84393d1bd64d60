"""The checks of the store. At start, the manager warns once of a bucket that deletes objects."""

from __future__ import annotations

import pytest

from rlm.tasks.cycle.store_check import StoreCheck
from rsm.segment.errors import RetriableError
from tests.log_records import fields_of
from tests.unit.rlm.ruled_storage import FOREIGN, OURS, RuledStorage


def test_check_when_a_rule_takes_objects_of_rlm_then_one_warning_names_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    check = StoreCheck(RuledStorage(FOREIGN, OURS), key_prefix="rlm/")

    check.step()
    check.step()

    (warning,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert fields_of(warning)["rule"] == OURS


def test_check_when_the_rules_may_not_be_read_then_no_failure_and_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    check = StoreCheck(RuledStorage(problem=RetriableError("no permission")), key_prefix="")

    check.step()
    check.step()

    assert [each.levelname for each in caplog.records] == ["INFO"]


def test_check_when_the_first_answer_fails_then_asks_again_and_warns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A store that is slow for a moment at the start must not hide a rule."""
    storage = RuledStorage(OURS, problem=RetriableError("timed out"))
    check = StoreCheck(storage, key_prefix="rlm/")

    check.step()
    storage.problem = None
    check.step()
    check.step()

    assert [each.levelname for each in caplog.records] == ["WARNING"]
