"""A user's mistakes on the command line of an audit."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.audit.command import audit, command_parser, loss_advice
from spark_tools.audit.findings import Finding


def arguments(root: Path, *more: str) -> Namespace:
    """Return the arguments of an audit that reaches no cluster."""
    options = ("bootstrap.servers=127.0.0.1:1", f"rsm.config.storage.filesystem.root={root}")
    words = [word for option in options for word in ("--option", option)]
    return command_parser().parse_args([*words, *more])


@pytest.mark.parametrize("page", ["away/audit.html", ".", "/proc/audit.html"])
def test_audit_when_its_page_can_not_be_written_then_reported_before_any_work(
    page: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidConfigError, match="cannot write the file"):
        audit(arguments(tmp_path, "--page", str(tmp_path / page)))


def test_audit_when_its_store_is_not_there_then_reported_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="cannot access the store's root"):
        audit(arguments(tmp_path / "away"))


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--yes"], "--delete or --quarantine"),
        (["--dry-run"], "no effect without --delete or --quarantine"),
        (["--price", "0.02"], "no effect without --page"),
        (["--currency", "EUR", "--page", "audit.html"], "no effect without --price"),
        (["--option", "remote.orphan.grace=1"], "did_you_mean=remote.orphan.grace.ms"),
        (["--option", "timeoutMs=1"], "option=timeoutMs"),
    ],
)
def test_audit_when_what_is_given_would_say_nothing_then_reported_before_any_work(
    more: list[str], named: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidConfigError, match=named):
        audit(arguments(tmp_path, *more))


@pytest.mark.parametrize("treatment", ["--delete", "--quarantine"])
def test_audit_when_it_can_not_ask_before_a_deletion_then_refused_before_it_connects(
    treatment: str, tmp_path: Path
) -> None:
    """The tests have no terminal; `rlm` refuses in the same way."""
    with pytest.raises(InvalidConfigError, match="Check the effect with --dry-run, then pass"):
        audit(arguments(tmp_path / "away", treatment))
    with pytest.raises(InvalidConfigError, match="cannot access the store's root"):
        audit(arguments(tmp_path / "away", treatment, "--dry-run"))


def test_loss_advice_when_data_is_lost_then_names_the_first_object_and_what_to_do() -> None:
    lost = Finding(
        kind="missing",
        topic="orders",
        partition=3,
        segment_id="a:b",
        object_key="cold/a.log",
        detail="a finished segment's object is not in the store",
    )

    (line,) = loss_advice([Finding(kind="orphan"), lost, lost])

    assert line == (
        "data is lost or damaged: a finished segment's object is not in the store "
        "(partition=orders:3, segment_id=a:b, object=cold/a.log). Restore missing or damaged "
        "objects, or see `rlm topic resolve orders:3 --dry-run`. --page FILE and --output DIR "
        "list all findings."
    )


def test_loss_advice_when_nothing_is_lost_then_none() -> None:
    assert [*loss_advice([Finding(kind="orphan")])] == []
