"""Every command of `rlm` shows its reviewed help, by `--help` and by `-h`.

The commands are those of the program, so that a new one needs no entry here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import typer
from typer.core import TyperGroup

from rlm.cli.main import COMMANDS, build_app
from tests.unit.rlm.cli.golden_text import GOLDEN, assert_golden

COMMAND = typer.main.get_command(build_app())
_SUMMARY_MAX_CHARS = 60


def _names_of(group: object, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    if isinstance(group, TyperGroup):
        context = group.context_class(group)
        for name in group.list_commands(context):
            yield from _names_of(group.get_command(context, name), *names, name)


def _command_of(names: tuple[str, ...]) -> Any:
    command: Any = COMMAND
    for name in names:
        command = command.get_command(command.context_class(command), name)
    return command


def commands_of(group: object) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Return every command that does something, by its name."""
    for names in _names_of(group):
        if not isinstance(found := _command_of(names), TyperGroup):
            yield names, found


def _file_of(names: tuple[str, ...]) -> str:
    return f"help/{'_'.join(('rlm', *names))}.txt"


@pytest.mark.parametrize(
    "names", [*_names_of(COMMAND)], ids=lambda names: " ".join(("rlm", *names))
)
def test_command_when_asked_for_help_then_prints_the_reviewed_text(
    names: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = []
    for option in ("-h", "--help"):
        assert COMMAND.main([*names, option], prog_name="rlm", standalone_mode=False) == 0
        printed.append(capsys.readouterr().out)

    assert printed[0] == printed[1]
    assert printed[0].lstrip().startswith(" ".join(("Usage: rlm", *names)))
    assert_golden(_file_of(names), (line.rstrip() for line in printed[0].splitlines()))


def test_commands_when_listed_then_no_summary_is_cut_at_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    COMMAND.main(["-h"], prog_name="rlm", standalone_mode=False)

    listed = capsys.readouterr().out
    for source in COMMANDS.values():
        assert f"{source.summary}\n" in listed


def test_reviewed_texts_when_listed_then_each_is_of_a_command() -> None:
    kept = {str(path.relative_to(GOLDEN)) for path in (GOLDEN / "help").iterdir()}

    assert kept == {_file_of(names) for names in _names_of(COMMAND)}


@pytest.mark.parametrize("names", [names for names in _names_of(COMMAND) if names], ids=" ".join)
def test_command_when_listed_then_its_summary_is_short_and_it_has_an_example(
    names: tuple[str, ...],
) -> None:
    command = _command_of(names)

    summary = (command.help or "").partition("\n")[0]
    assert 0 < len(summary) <= _SUMMARY_MAX_CHARS, summary
    if not isinstance(command, TyperGroup):
        assert "Example" in (command.epilog or "")


def examples_of(command: Any) -> list[list[str]]:
    """Return the arguments of the examples in a command's help, as a shell reads them."""
    text = command.epilog.replace("Example:", "\n").replace("$(uuidgen)", str(UUID(int=1)))
    lines = (line.strip().partition(" < ")[0] for line in text.splitlines())
    return [shlex.split(line, comments=True) for line in lines if line.startswith("rlm ")]


@pytest.mark.parametrize(
    ("names", "command"),
    [pytest.param(*each, id=" ".join(each[0])) for each in commands_of(COMMAND)],
)
def test_examples_of_a_command_when_typed_then_it_accepts_them(
    names: tuple[str, ...], command: Any
) -> None:
    examples = examples_of(command)

    assert examples
    for program, *arguments in examples:
        assert (program, *arguments[: len(names)]) == ("rlm", *names)
        assert command.make_context(program, arguments[len(names) :]).params


@pytest.mark.parametrize("name", COMMANDS)
def test_summary_when_listed_without_an_import_then_is_the_first_line_of_the_command(
    name: str,
) -> None:
    command = _command_of((name,))

    assert COMMANDS[name].summary == command.help.partition("\n")[0]


@pytest.mark.parametrize("name", ["manager-process", "gateway-process"])
def test_process_when_asked_for_help_then_explains_itself_and_is_not_listed(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert COMMAND.main([name, "-h"], prog_name="rlm", standalone_mode=False) == 0
    assert COMMAND.main(["-h"], prog_name="rlm", standalone_mode=False) == 0

    assert capsys.readouterr().out.count(name) == 1
