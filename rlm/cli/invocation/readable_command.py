"""Formats a command's help for a terminal; `readable_help` applies it to an application.

Rewrites what typer prints: the types of arguments, braces around required arguments, parentheses
around default texts, and inequalities for ranges. Removes the **bold** that the help texts contain
for the reference in docs. Shortens pydantic's reasons why a value is invalid. For an unknown
command, option or value, suggests only the most similar one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_TYPE = re.compile(r" <[\w ]+>$")
_DEFAULT_TEXT = re.compile(r"\[default: \(([^)]*)\)")
_BOUNDS = re.compile(r"\b(-?[\d.]+)<=x<=(-?[\d.]+)")
_LEAST = re.compile(r"\bx>=(-?[\d.]+)")
_REASONS = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"^Input should be a valid integer\b.*"), "not a whole number"),
    (re.compile(r"^Input should be a valid number\b.*"), "not a number"),
    (re.compile(r"^Input should be greater than or equal to "), "must be at least "),
    (re.compile(r"^Input should be less than or equal to "), "must be at most "),
)
_UNKNOWN_VALUE = re.compile(r"'(?P<given>[^']*)' is not (?:one of )?(?P<known>'.*)", re.DOTALL)
_QUOTED = re.compile(r"'([^']*)'")
_NEGATIVE_NUMBER = re.compile(r"-\d")
_BOLD = "**"
_LONGEST_BOUND = len("2147483647")


class ReadableCommand(TyperCommand):
    """Represents a command of `rlm` with readable help and errors."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer's types are private
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as above
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            for pattern, text in _REASONS:
                error.message = pattern.sub(text, error.message)
            error.message = _with_close_value(error.message)
            raise
        except Exception as error:
            _explain_unknown_option(error)
            raise

    def get_help(self, ctx: Any) -> str:  # noqa: ANN401 - as above
        text: str = super().get_help(ctx)
        return text.replace(_BOLD, "")

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - as above
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            params = (each for each in self.get_params(ctx) if each.param_type_name == kind)
            if rows := [*help_rows(params, ctx)]:
                with formatter.section(title):
                    formatter.write_dl(rows)


class ReadableGroup(TyperGroup):
    """Represents a group of commands that suggests at most one option or command."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - typer's types are private
        super().__init__(**{**settings, "suggest_commands": False})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as above
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            _explain_unknown_option(error)
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as above
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            close = get_close_matches(args[0], self.commands, n=1)
            if close:
                error.message = f"{error.message.removesuffix('.')}. Did you mean {close[0]!r}?"
            raise


def _with_close_value(message: str) -> str:
    """Add the most similar known value to a message about an unknown value."""
    found = _UNKNOWN_VALUE.match(message)
    if found is None:
        return message
    close = get_close_matches(found["given"], _QUOTED.findall(found["known"]), n=1)
    return f"{message.removesuffix('.')}. Did you mean {close[0]!r}?" if close else message


def _explain_unknown_option(error: Any) -> None:  # noqa: ANN401 - typer does not export its class
    """Name only the most similar option. Replace the message if the option is a number.

    typer also takes an argument such as -1 for an option.
    """
    if _NEGATIVE_NUMBER.match(getattr(error, "option_name", "")):
        error.message = "negative numbers are neither options nor valid arguments"
    options = getattr(error, "possibilities", None)
    if options:
        error.message = f"{error.message}. Did you mean {options[0]!r}?"
        error.possibilities = None


def readable_help(app: typer.Typer) -> None:
    """Apply readable help to all commands of an application and of its groups."""
    for command in app.registered_commands:
        command.cls = ReadableCommand
    for group in app.registered_groups:
        group.cls = ReadableGroup
        if group.typer_instance is not None:
            readable_help(group.typer_instance)


def help_rows(params: Any, ctx: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - as above
    """Yield the names and the meaning of each parameter that is not hidden."""
    for each in params:
        record = each.get_help_record(ctx)
        if record is not None:
            names, meaning = record
            if each.param_type_name == "argument":
                names = _TYPE.sub("", names)
            yield names, _readable(meaning)


def _readable(meaning: str) -> str:
    text = _DEFAULT_TEXT.sub(r"[default: \1", meaning)
    return _LEAST.sub(r"at least \1", _BOUNDS.sub(_bounds, text))


def _bounds(found: re.Match[str]) -> str:
    least, most = found.groups()
    # The largest 64-bit number is no useful bound for people.
    return f"{least} to {most}" if len(most) <= _LONGEST_BOUND else f"at least {least}"
