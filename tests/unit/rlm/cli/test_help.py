"""Every command of `rlm` explains itself, by `--help` and by `-h`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperGroup

from rlm.cli.main import build_app

COMMAND = typer.main.get_command(build_app())


def _names_of(group: object, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    if isinstance(group, TyperGroup):
        context = group.context_class(group)
        for name in group.list_commands(context):
            yield from _names_of(group.get_command(context, name), *names, name)


@pytest.mark.parametrize(
    "names", [*_names_of(COMMAND)], ids=lambda names: " ".join(("rlm", *names))
)
def test_command_when_asked_for_help_then_prints_its_usage(
    names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for option in ("-h", "--help"):
        assert COMMAND.main([*names, option], prog_name="rlm", standalone_mode=False) == 0
        printed.append(capsys.readouterr().out)

    assert printed[0] == printed[1]
    assert printed[0].lstrip().startswith(" ".join(("Usage: rlm", *names)))
