"""A user's mistakes on the command line of a repair, without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.repair.command import command_parser, repair


def asked(store: Path, *more: str) -> None:
    options = ("bootstrap.servers=127.0.0.1:1", f"rsm.config.storage.filesystem.root={store}")
    words = [word for option in options for word in ("--option", option)]
    repair(command_parser().parse_args([*words, *more]))


def test_repair_when_the_producer_is_configured_wrong_then_reported_before_any_work(
    tmp_path: Path,
) -> None:
    """Executors would find out in the middle of a batch."""
    with pytest.raises(InvalidConfigError, match=r"max\.in\.flight"):
        asked(tmp_path, "--dry-run", "--option", "client.max.in.flight=10")


@pytest.mark.parametrize("more", [("--interval", "1"), ("--report", "somewhere")])
def test_repair_when_a_dry_run_is_to_do_what_it_does_not_then_refused(
    tmp_path: Path, more: tuple[str, str]
) -> None:
    with pytest.raises(InvalidConfigError, match=f"{more[0]} has no effect"):
        asked(tmp_path, "--dry-run", *more)


@pytest.mark.parametrize("name", ["letters", "metadata"])
def test_repair_when_parked_letters_have_no_topic_of_their_own_then_refused(
    tmp_path: Path, name: str
) -> None:
    """In the same topic, parked dead letters would be read again and again."""
    topics = (
        "remote.delete.dead.letter.topic=letters",
        "rlmm.config.remote.log.metadata.topic.name=metadata",
    )
    words = [word for topic in topics for word in ("--option", topic)]

    with pytest.raises(InvalidConfigError, match="--parking-topic"):
        asked(tmp_path, "--dry-run", *words, "--parking-topic", name)


def test_repair_when_the_letters_topic_is_that_of_the_metadata_then_refused(
    tmp_path: Path,
) -> None:
    topic = "remote.delete.dead.letter.topic=__remote_log_segment_metadata"

    with pytest.raises(InvalidConfigError, match="invalid: it is the metadata topic"):
        asked(tmp_path, "--dry-run", "--option", topic)
