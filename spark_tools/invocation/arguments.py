"""Defines the arguments of all jobs, and returns the configuration that they give."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from rsm.config.amounts import format_duration, parse_duration, parse_size
from rsm.config.config_file import CONFIG_HELP, require_config_file
from rsm.config.properties import read_properties
from rsm.program.confirmation import YES_HELP
from rsm.segment.errors import InvalidConfigError
from spark_tools.cluster_topics import MAX_TIMEOUT_MS
from spark_tools.connection import (
    BOOTSTRAP,
    CLIENT_PREFIX,
    CONFIG,
    KEYS,
    OPTION_PREFIXES,
    names_brokers,
    plugin_key_prefixes,
)
from spark_tools.invocation.ending import CHOSEN_OUTCOMES, JobOutcome
from spark_tools.invocation.parser import JobParser, PrintVersion, one_of
from spark_tools.option_values import unknown_option

_DEFAULT_TIMEOUT = "60s"
_SHORTEST_TIMEOUT_MS = 100
_NO_OUTCOME = "none"


def count_above_zero(text: str) -> int:
    """Parse a whole number above 0."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds")
    return found_ms // 1000


def _amount(text: str, parse: Callable[[str], int], *, least: int) -> int:
    try:
        found = parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if found < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return found


def _timeout_in_ms(text: str) -> int:
    """Parse a duration from 100 ms to an hour, with a unit or in seconds."""
    try:
        found_ms = round(float(text) * 1000)
    except ValueError:
        found_ms = duration_in_ms(text)
    except OverflowError:  # The number is infinite.
        found_ms = -1
    if not _SHORTEST_TIMEOUT_MS <= found_ms <= MAX_TIMEOUT_MS:
        bounds = " to ".join(map(format_duration, (_SHORTEST_TIMEOUT_MS, MAX_TIMEOUT_MS)))
        raise argparse.ArgumentTypeError(f"{text!r} is not in the range {bounds}")
    return found_ms


def shared_arguments(name: str, description: str, *, example: str, operands: str = "") -> JobParser:
    """Return a parser with the arguments of all jobs, which have the same names as in `rlm`."""
    parser = JobParser(
        prog=name,
        usage=f"%(prog)s [OPTIONS]{operands}",
        description=description,
        epilog=f"Example: {example}",
    )
    parser.add_argument("-h", "--help", action="help", help="Show this message and exit.")
    parser.add_argument(
        "--version", nargs=0, action=PrintVersion, help="Print the version and exit."
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
        help="File with settings of the Kafka client (TLS, SASL); needs --bootstrap-server.",
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
        help="How long to wait for each response from the cluster; in seconds if it has no unit."
        " [default: %(default)s]",
    )


def add_confirmation(parser: JobParser, *, dry_run: str) -> None:
    """Mark the parser's job as one that deletes, and add `--dry-run` and `--yes`.

    `dry_run` is the help of `--dry-run`. The job must call `require_consent` before it connects
    (rsm.program.confirmation).
    """
    parser.deletes = True
    parser.add_argument("--dry-run", action="store_true", help=dry_run)
    parser.add_argument("-y", "--yes", action="store_true", help=YES_HELP)


def _outcomes(text: str) -> tuple[JobOutcome, ...]:
    known = {each.value: each for each in CHOSEN_OUTCOMES}
    names = [] if text == _NO_OUTCOME else [name.strip() for name in text.split(",")]
    return tuple(known[one_of((*known, _NO_OUTCOME), name)] for name in names)


def given_options(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the keys that the command line gives, with the path of the configuration file.

    The file is that of `--config`. Without `--config`, and if no option names the brokers, it is
    the file that `require_config_file` finds. Raises InvalidConfigError for an `--option` without a
    value, for `--config` together with `--bootstrap-server`, if nothing names the brokers, and for
    a `--command-config` that has no effect or cannot be read.
    """
    values = _of_command_config(arguments)
    for text in arguments.option:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidConfigError(
                "the setting is invalid: it has no value",
                option="--option",
                found=text,
                expected="KEY=VALUE",
            )
        values[key.strip()] = value.strip()
    if arguments.bootstrap_server is not None:
        if arguments.config is not None:
            raise InvalidConfigError(
                "--config and --bootstrap-server exclude each other", advice="Give one"
            )
        values[BOOTSTRAP] = arguments.bootstrap_server
    if arguments.config is not None:
        values[CONFIG] = arguments.config
    if CONFIG not in values and not names_brokers(values):
        found = require_config_file(environment, alternative="--bootstrap-server")
        values[CONFIG] = str(found)
    return values


def _of_command_config(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the keys of `--command-config`; settings of the client get their prefix.

    The file may also contain keys of `rlm run`'s file. Raises InvalidConfigError.
    """
    if arguments.command_config is None:
        return {}
    if arguments.bootstrap_server is None:
        raise InvalidConfigError(
            "--command-config has no effect without --bootstrap-server",
            advice="Give both or neither",
        )
    return {
        key if key in KEYS or key.startswith(OPTION_PREFIXES) else f"{CLIENT_PREFIX}{key}": value
        for key, value in read_properties(Path(arguments.command_config)).values().items()
    }


def require_known(options: Mapping[str, str], *, passed_on: tuple[str, ...] = ()) -> None:
    """Raise InvalidConfigError for an unknown option, such as a misspelled key.

    Other components validate keys with the prefixes `passed_on`.
    """
    known = (CLIENT_PREFIX, *passed_on)
    unknown = [name for name in options if name not in KEYS and not name.startswith(known)]
    of_plugins = plugin_key_prefixes(options) if unknown else ()
    for name in unknown:
        if not name.startswith(of_plugins):
            raise unknown_option(name, KEYS)
