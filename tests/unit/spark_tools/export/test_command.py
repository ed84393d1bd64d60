"""What a user gets wrong on the command line of an export."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.export.command import command_parser, export


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mode", "permissive"),
        ("startingTimestamp", "0"),
        ("endingTimestamp", "17"),
        ("endingOffsets", "latest"),
        ("endingOffsets", '{"orders":{"0":-1}}'),
    ],
)
def test_export_when_records_would_be_left_out_for_ever_then_told_before_any_work(
    option: str, value: str, tmp_path: Path
) -> None:
    """Nobody is asked anything: there is no cluster."""
    options = (
        "bootstrap.servers=127.0.0.1:1",
        f"rsm.config.storage.filesystem.root={tmp_path}",
        f"{option}={value}",
    )
    words = [word for each in options for word in ("--option", each)]
    arguments = command_parser().parse_args([*words, "orders", str(tmp_path / "out")])

    with pytest.raises(InvalidConfigError, match=f"export.*option={option}"):
        export(arguments)
