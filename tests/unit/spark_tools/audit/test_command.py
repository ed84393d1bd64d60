"""What a user gets wrong on the command line of an audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.audit.command import audit, command_parser


@pytest.mark.parametrize("page", ["away/audit.html", "."])
def test_audit_when_its_page_can_not_be_written_then_told_before_any_work(
    page: str, tmp_path: Path
) -> None:
    """Nobody is asked anything: there is no cluster."""
    options = ("bootstrap.servers=127.0.0.1:1", f"rsm.config.storage.filesystem.root={tmp_path}")
    words = [word for option in options for word in ("--option", option)]
    arguments = command_parser().parse_args([*words, "--page", str(tmp_path / page)])

    with pytest.raises(InvalidConfigError, match="no file can be written there"):
        audit(arguments)
