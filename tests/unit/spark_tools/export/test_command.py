"""A user's mistakes on the command line of an export."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.export.command import command_parser, export


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mode", "dropmalformed"),
        ("fromTimestamp", "0"),
        ("untilTimestamp", "17"),
        ("endingOffsets", "latest"),
        ("endingOffsets", '{"orders":{"0":-1}}'),
        ("columns", "partition,topic"),
    ],
)
def test_export_when_records_would_never_be_exported_then_reported_before_any_work(
    option: str, value: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidConfigError, match=f"export.*option={option}"):
        export(arguments(tmp_path, option, value))


def test_export_when_a_key_is_misspelt_then_reported(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidConfigError, match=r"option is unknown.*did_you_mean=rsm\.config\.key\.prefix"
    ):
        export(arguments(tmp_path, "rsm.config.key.prefx", "cold"))


def test_export_when_an_option_has_another_case_then_it_wins_over_the_default(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidConfigError, match=r"option=timeoutMs, found=never"):
        export(arguments(tmp_path, "timeoutms", "never"))


def arguments(directory: Path, option: str, value: str) -> Namespace:
    """Return the arguments of an export that reaches no cluster."""
    options = (
        "bootstrap.servers=127.0.0.1:1",
        f"rsm.config.storage.filesystem.root={directory}",
        f"{option}={value}",
    )
    words = [word for each in options for word in ("--option", each)]
    return command_parser().parse_args([*words, "orders", str(directory / "out")])
