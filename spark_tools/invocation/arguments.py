"""The arguments that all jobs share, and the keys that they give."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from rsm.config.amounts import format_duration, parse_duration, parse_size
from rsm.config.config_file import CONFIG_HELP, require_config_file
from rsm.config.confirmation import YES_HELP
from rsm.segment.errors import InvalidConfigError
from spark_tools.cluster_topics import MAX_TIMEOUT_MS
from spark_tools.connection import (
    BOOTSTRAP,
    CLIENT_PREFIX,
    CONFIG,
    KEYS,
    OPTION_PREFIXES,
    file_values,
    names_brokers,
    plugin_key_prefixes,
)
from spark_tools.invocation.ending import CHOSEN_OUTCOMES, JobOutcome
from spark_tools.option_values import unknown_option

_DISTRIBUTION = "kafka-rlm"
_DEFAULT_TIMEOUT = "60s"
_SHORTEST_TIMEOUT_MS = 100


def count_above_zero(text: str) -> int:
    """Parse a whole number above 0, for an option where 0 has no meaning."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"not a whole number above 0: {text!r}")
    return int(text)


def size_in_bytes(text: str) -> int:
    """Parse a size above 0, with a unit or in bytes."""
    return _amount(text, parse_size, least=1)


def duration_in_ms(text: str) -> int:
    """Parse a duration, with a unit or in ms."""
    return _amount(text, parse_duration, least=0)


def duration_in_s(text: str) -> int:
    """Parse a duration of whole seconds above 0, with a unit or in seconds."""
    found_ms = _amount(text, partial(parse_duration, unit_ms=1000), least=1)
    if found_ms % 1000:
        raise argparse.ArgumentTypeError(f"not a whole number of seconds: {text!r}")
    return found_ms // 1000


def _amount(text: str, parse: Callable[[str], int], *, least: int) -> int:
    try:
        found = parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if found < least:
        raise argparse.ArgumentTypeError(f"must be above 0: {text!r}")
    return found


def _timeout_in_ms(text: str) -> int:
    """Parse a duration within the Kafka client's bounds, with a unit or in seconds."""
    try:
        found_ms = round(float(text) * 1000)
    except ValueError:
        found_ms = duration_in_ms(text)
    except OverflowError:  # infinite
        found_ms = -1
    if not _SHORTEST_TIMEOUT_MS <= found_ms <= MAX_TIMEOUT_MS:
        bounds = " to ".join(map(format_duration, (_SHORTEST_TIMEOUT_MS, MAX_TIMEOUT_MS)))
        raise argparse.ArgumentTypeError(f"{text!r} is not in the range {bounds}")
    return found_ms


class _PrintVersion(argparse.Action):
    """Prints the version and exits. Only then looks for it: `spark-submit` may not install it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        try:
            version = importlib.metadata.version(_DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError:
            version = f"of unknown version: {_DISTRIBUTION} is not installed as a package"
        sys.stdout.write(f"{parser.prog} {version}\n")
        parser.exit()


class _Help(argparse.HelpFormatter):
    """Shows all names of an option before its value, as `rlm` and Python 3.13 do."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {self._format_args(action, '')}"


class JobParser(argparse.ArgumentParser):
    """A parser of a job whose arguments with a value have an example, for docs/spark-jobs.md.

    `deletes`: the job can delete what the cluster has, and asks before.
    """

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - those of the parent
        self.examples: dict[str, str] = {}
        self.deletes = False
        super().__init__(**settings)

    def add_argument(self, *names: Any, example: str = "", **settings: Any) -> argparse.Action:  # noqa: ANN401 - as above
        """Add an argument; `example` is a value for it."""
        action = super().add_argument(*names, **settings)
        self.examples[action.dest] = example
        return action

    @property
    def arguments(self) -> tuple[argparse.Action, ...]:
        """All arguments, in the order of the help."""
        return tuple(self._actions)


def shared_arguments(name: str, description: str, *, example: str, operands: str = "") -> JobParser:
    """Return a parser with the arguments of all jobs, which `rlm` names the same.

    It accepts only whole names of options: a part of --delete must not delete.
    """
    parser = JobParser(
        prog=name,
        usage=f"%(prog)s [OPTIONS]{operands}",
        description=description,
        epilog=f"Example: {example}",
        formatter_class=_Help,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help="Show this message and exit.")
    parser.add_argument(
        "--version", nargs=0, action=_PrintVersion, help="Print the version and exit."
    )
    _add_cluster(parser)
    parser.add_argument(
        "--jars", example="spark-jars", metavar="DIR", help="Directory of jars that Spark loads."
    )
    parser.add_argument(
        "--fail-on",
        example="data-loss",
        metavar="OUTCOMES",
        type=_outcomes,
        default=(JobOutcome.DATA_LOSS, JobOutcome.FAILED_WORK),
        help="Outcomes that set the exit code, comma-separated: data-loss (4), failed-work (5),"
        " nothing-to-do (6), or none. [default: data-loss,failed-work]",
    )
    parser.add_argument(
        "--summary",
        example="summary.json",
        metavar="FILE",
        type=Path,
        help="File for the outcome and the counts of the job, as JSON.",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="Print the outcome and the counts of the job as JSON, and nothing else.",
    )
    return parser


def _add_cluster(parser: JobParser) -> None:
    parser.add_argument("--config", example="rlm.properties", metavar="FILE", help=CONFIG_HELP)
    parser.add_argument(
        "--bootstrap-server",
        example="broker1:9092",
        metavar="HOST:PORT",
        help="A broker of the cluster, instead of a configuration file.",
    )
    parser.add_argument(
        "--command-config",
        example="client.properties",
        metavar="FILE",
        help="Properties of the Kafka client (TLS, SASL), with --bootstrap-server.",
    )
    parser.add_argument(
        "--option",
        example="rsm.config.key.prefix=rlm",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="A setting that overrides the file's value; may be repeated.",
    )
    parser.add_argument(
        "--timeout",
        example="5m",
        dest="timeout_ms",
        metavar="DURATION",
        type=_timeout_in_ms,
        default=_DEFAULT_TIMEOUT,
        help="How long to wait for each answer of the cluster; without a unit in seconds."
        " [default: %(default)s]",
    )


def add_confirmation(parser: JobParser, *, dry_run: str) -> None:
    """Mark the parser as that of a job that deletes: add `--dry-run`, with its help, and `--yes`.

    The job calls `require_consent` before it connects (rsm.config.confirmation).
    """
    parser.deletes = True
    parser.add_argument("--dry-run", action="store_true", help=dry_run)
    parser.add_argument("-y", "--yes", action="store_true", help=YES_HELP)


def _outcomes(text: str) -> tuple[JobOutcome, ...]:
    known = {each.value: each for each in CHOSEN_OUTCOMES}
    names = [] if text == "none" else [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(
            f"not {unknown[0]!r}, but some of {','.join(known)}, or none"
        )
    return tuple(known[name] for name in names)


def given_options(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the given keys, with the configuration file of the option or of the host.

    An option that names the brokers replaces the host's file. InvalidConfigError for an `--option`
    without a value, for two sources of the brokers, and without file and brokers.
    """
    values = _of_command_config(arguments)
    for text in arguments.option:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidConfigError("an option has no value", found=text, expected="KEY=VALUE")
        values[key.strip()] = value.strip()
    if arguments.bootstrap_server is not None:
        if arguments.config is not None:
            raise InvalidConfigError("--config and --bootstrap-server exclude each other: give one")
        values[BOOTSTRAP] = arguments.bootstrap_server
    if arguments.config is not None:
        values[CONFIG] = arguments.config
    if CONFIG not in values and not names_brokers(values):
        found = require_config_file(environment, alternative="--bootstrap-server")
        values[CONFIG] = str(found)
    return values


def _of_command_config(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the keys of the client's file, with the prefix of the client's settings.

    It may also have keys of `rlm run`'s file that jobs read, as for `rlm`. InvalidConfigError.
    """
    if arguments.command_config is None:
        return {}
    if arguments.bootstrap_server is None:
        raise InvalidConfigError("--command-config requires --bootstrap-server")
    return {
        key if key in KEYS or key.startswith(OPTION_PREFIXES) else f"{CLIENT_PREFIX}{key}": value
        for key, value in file_values(arguments.command_config).items()
    }


def require_known(options: Mapping[str, str], *, passed_on: tuple[str, ...] = ()) -> None:
    """Raise InvalidConfigError for an unknown option: a misspelled key would leave its default.

    `passed_on` are prefixes of keys that other components validate.
    """
    known = (CLIENT_PREFIX, *passed_on)
    unknown = [name for name in options if name not in KEYS and not name.startswith(known)]
    of_plugins = plugin_key_prefixes(options) if unknown else ()
    for name in unknown:
        if not name.startswith(of_plugins):
            raise unknown_option(name, KEYS)
