"""Help of commands as text; every command's whole help is a golden text."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import pytest
import typer

from rlm.cli.invocation.readable_command import readable_help


class _Color(Enum):
    RED = "red"


def _built(command: Any) -> Any:
    app = typer.Typer(rich_markup_mode=None)
    group = typer.Typer()
    group.callback()(lambda: None)
    group.command("run")(command)
    app.add_typer(group, name="group")
    readable_help(app)

    return typer.main.get_command(app)


def _help(command: Any, capsys: pytest.CaptureFixture[str]) -> str:
    _built(command).main(["group", "run", "--help"], prog_name="rlm", standalone_mode=False)
    return " ".join(capsys.readouterr().out.split())


def test_help_when_typer_shows_types_and_ranges_then_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def command(
        name: Annotated[str, typer.Argument(metavar="NAME", help="A.")],
        size: Annotated[int, typer.Argument(metavar="SIZE", min=0, help="B.")],
        wait: Annotated[float, typer.Option(metavar="D", show_default="30s", help="C.")] = 30.0,
        count: Annotated[int, typer.Option(metavar="N", min=1, max=9, help="E.")] = 5,
        most: Annotated[int, typer.Option(metavar="M", min=0, max=2**63 - 1, help="F.")] = 5,
        color: Annotated[_Color | None, typer.Option(help="G.")] = None,
    ) -> None:
        """Do it. **Data loss:** H."""

    text = _help(command, capsys)

    assert "Usage: rlm group run [OPTIONS] NAME SIZE Do it. Data loss: H." in text
    assert "NAME A. [required] SIZE B. [at least 0; required]" in text
    assert "--wait D C. [default: 30s]" in text
    assert "--count N E. [default: 5; 1 to 9]" in text
    assert "--most M F. [default: 5; at least 0]" in text
    assert "--color <red> G." in text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["abc"], "not a whole number"),
        (["11"], "must be at most 10"),
        (["0"], "must be at least 1"),
        (["5", "--color", "green"], "'green' is not one of 'red'."),
        (["5", "--color", "rde"], "'rde' is not one of 'red'. Did you mean 'red'?"),
        (["5", "--share", "much"], "not a number"),
    ],
)
def test_value_when_it_is_invalid_then_a_reason_without_the_library_s_phrases(
    arguments: list[str], reason: str
) -> None:
    def command(
        size: Annotated[int, typer.Argument(min=1, max=10)],
        share: Annotated[float, typer.Option()] = 1.0,
        color: Annotated[_Color | None, typer.Option()] = None,
    ) -> None:
        """Do it."""

    with pytest.raises(typer.BadParameter) as raised:
        _built(command).main(["group", "run", *arguments], standalone_mode=False)

    assert raised.value.message == reason


def test_option_when_mistyped_then_only_the_most_similar_one_is_suggested() -> None:
    def command(
        retention: Annotated[int | None, typer.Option()] = None,
        retention_ms: Annotated[int | None, typer.Option()] = None,
    ) -> None:
        """Do it."""

    app = _built(command)
    for typed, text in (
        ("--retentoin", "No such option: --retentoin. Did you mean '--retention'?"),
        ("--zzzzzz", "No such option: --zzzzzz"),
    ):
        with pytest.raises(Exception, match="No such option") as raised:
            app.main(["group", "run", typed], standalone_mode=False)

        assert raised.value.format_message() == text  # type: ignore[attr-defined]  # typer's


@pytest.mark.parametrize("number", ["-1", "-15"])
def test_argument_when_a_number_is_negative_then_the_error_is_not_about_an_unknown_option(
    number: str,
) -> None:
    def command(offset: Annotated[int, typer.Argument(min=0)]) -> None:
        """Do it."""

    with pytest.raises(typer.TyperException) as raised:
        _built(command).main(["group", "run", number], standalone_mode=False)

    text = raised.value.format_message()
    assert text == "negative numbers are neither options nor valid arguments"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["group", "rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["group", "zzz"], "No such command 'zzz'."),
        (["group", "--hlep"], "No such option: --hlep. Did you mean '--help'?"),
        (["group", "--zzz"], "No such option: --zzz"),
    ],
)
def test_group_when_a_command_or_option_is_mistyped_then_only_the_most_similar_is_suggested(
    arguments: list[str], text: str
) -> None:
    def command() -> None:
        """Do it."""

    with pytest.raises(typer.TyperException) as raised:
        _built(command).main(arguments, standalone_mode=False)

    assert raised.value.format_message() == text
