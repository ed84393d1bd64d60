"""What a user gets wrong on the command line of a repair. Nobody is asked: there is no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.repair.command import command_parser, repair


def asked(store: Path, *more: str) -> None:
    options = ("bootstrap.servers=127.0.0.1:1", f"rsm.config.storage.filesystem.root={store}")
    words = [word for option in options for word in ("--option", option)]
    repair(command_parser().parse_args([*words, *more]))


def test_repair_when_the_producer_is_configured_wrong_then_told_before_any_work(
    tmp_path: Path,
) -> None:
    """Executors would find out in the middle of a batch."""
    with pytest.raises(InvalidConfigError, match=r"max\.in\.flight"):
        asked(tmp_path, "--dry-run", "--option", "client.max.in.flight=10")
