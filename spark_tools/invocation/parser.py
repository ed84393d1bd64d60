"""Parses a job's command line, and reports errors as `rlm` does.

The error for an unknown option or value suggests a similar one.
"""

from __future__ import annotations

import argparse
import importlib.metadata
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, NoReturn

from rsm.segment.errors import RetriableError
from spark_tools.invocation.output import write_output

_DISTRIBUTION = "kafka-rlm"
_FAILED, _WRONG = 1, 2
_NO_VALUE = "expected one argument"


class PrintVersion(argparse.Action):
    """Prints the version and exits; under `spark-submit`, the package may not be installed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        try:
            version = importlib.metadata.version(_DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError:
            version = f"of unknown version: {_DISTRIBUTION} is not installed as a package"
        assert isinstance(parser, JobParser), "jobs have a JobParser"
        parser.print_text(f"{parser.prog} {version}\n")
        parser.exit()


class _Help(argparse.HelpFormatter):
    """Shows all names of an option before its value, as `rlm` and Python 3.13 do."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {self._format_args(action, '')}"


class JobParser(argparse.ArgumentParser):
    """Parses a job's command line. `examples` has a value of each option for docs/spark-jobs.md.

    Accepts only whole names of options: an abbreviation of --delete must not delete. `deletes` is
    True if the job can delete data of the cluster and first asks for confirmation.
    """

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - those of the parent
        self.examples: dict[str, str] = {}
        self.deletes = False
        super().__init__(
            formatter_class=_Help,
            allow_abbrev=False,
            add_help=False,
            exit_on_error=False,
            **settings,
        )

    def add_argument(self, *names: Any, example: str = "", **settings: Any) -> argparse.Action:  # noqa: ANN401 - as above
        """Add an argument; `example` is one of its values."""
        if "choices" in settings:
            settings.setdefault("type", partial(one_of, settings["choices"]))
        action = super().add_argument(*names, **settings)
        self.examples[action.dest] = example
        return action

    @property
    def arguments(self) -> tuple[argparse.Action, ...]:
        """Return all arguments, in the order of the help."""
        return tuple(self._actions)

    def parse_args(  # type: ignore[override]  # no job needs another namespace
        self, args: Sequence[str] | None = None
    ) -> argparse.Namespace:
        """Return the arguments; if one is invalid, print the error and exit with 2."""
        try:
            found, unknown = self.parse_known_args(args)
        except argparse.ArgumentError as error:
            self.error(_text(error))
        if unknown:
            self.error(self._unknown(unknown))
        return found

    def print_help(self, file: Any = None) -> None:  # noqa: ANN401 - that of the parent
        """Print the help to standard output."""
        assert file is None, "no caller needs another file"
        self.print_text(self.format_help())

    def print_text(self, text: str) -> None:
        """Print to standard output; if that fails, print an error and exit with 1."""
        try:
            write_output(text)
        except RetriableError as error:
            self.exit(_FAILED, f"{self.prog}: {error}\n")

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, as `rlm` does, and exit with 2."""
        usage = self.format_usage().replace("usage: ", "Usage: ", 1)
        self.exit(_WRONG, f"{usage}Try '{self.prog} -h' for help.\nError: {message}\n")

    def _unknown(self, arguments: Sequence[str]) -> str:
        option = next((each for each in arguments if each.startswith("-")), None)
        if option is None:
            return f"Got unexpected extra argument ({arguments[0]})"
        name = option.partition("=")[0]
        return f"No such option: {name}{_suggestion(name, self._names())}"

    def _names(self) -> Iterator[str]:
        return (name for action in self._actions for name in action.option_strings)


def one_of(known: Iterable[str], text: str) -> str:
    """Return the text if it is known; otherwise raise ArgumentTypeError, with a similar text."""
    names = tuple(known)
    if text not in names:
        listed = ", ".join(map(repr, names))
        kind = "not one of" if len(names) > 1 else "not"
        raise argparse.ArgumentTypeError(f"{text!r} is {kind} {listed}{_suggestion(text, names)}")
    return text


def _suggestion(text: str, known: Iterable[str]) -> str:
    """Return a question for the most similar known text; empty if none is similar."""
    close = get_close_matches(text, list(known), n=1)
    return f". Did you mean {close[0]!r}?" if close else ""


def _text(error: argparse.ArgumentError) -> str:
    if error.argument_name is None:
        return error.message
    names = " / ".join(map(repr, error.argument_name.split("/")))
    if isinstance(error.__context__, argparse.ArgumentTypeError):
        return f"Invalid value for {names}: {error.message}"
    if error.message == _NO_VALUE:
        return f"Option {names} requires an argument."
    return f"Invalid use of {names}: {error.message}"
