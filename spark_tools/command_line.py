"""What the jobs' command lines share: where cluster and store are, and how a job ends.

exit code 0  done
          1  failed
          2  the command line, the configuration or what it names is wrong
          3  nothing was decided, because a source did not answer whole (audit)
        130  ended by Ctrl-C
        143  ended by SIGTERM
"""

from __future__ import annotations

import argparse
import difflib
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from rsm.segment.errors import InvalidConfigError, TieredStorageError
from spark_tools.cluster_topics import MAX_TIMEOUT_MS
from spark_tools.connection import CLIENT_PREFIX, CONFIG, KEYS
from spark_tools.spark_errors import SPARK_ERRORS, cause_of

_DEFAULT_TIMEOUT_S = 60


def count_above_zero(text: str) -> int:
    """For argparse, which tells its error: 0 of something means nothing here."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"not a whole number above 0: {text!r}")
    return int(text)


def count_or_zero(text: str) -> int:
    """The same, and 0."""
    return 0 if text == "0" else count_above_zero(text)


def _timeout_s(text: str) -> int:
    """No longer than the Kafka client takes."""
    seconds, most = count_above_zero(text), MAX_TIMEOUT_MS // 1000
    if seconds > most:
        raise argparse.ArgumentTypeError(f"more than {most}: {text!r}")
    return seconds


def shared_arguments(name: str, description: str) -> argparse.ArgumentParser:
    """A parser with the arguments of all jobs."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--config", metavar="FILE", help="the file that `rlm run` takes")
    parser.add_argument(
        "--option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a key of that file, which wins over it; may be repeated",
    )
    parser.add_argument("--jars", metavar="DIR", help="a directory of jars for Spark to load")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_timeout_s,
        default=_DEFAULT_TIMEOUT_S,
        help="how long the cluster may take to answer (default %(default)s)",
    )
    return parser


def given_options(arguments: argparse.Namespace) -> dict[str, str]:
    """The keys that were given. InvalidConfigError for one without a value."""
    values: dict[str, str] = {}
    for text in arguments.option:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidConfigError("an option without a value", found=text, expected="KEY=VALUE")
        values[key.strip()] = value.strip()
    if arguments.config is not None:
        values[CONFIG] = arguments.config
    return values


def require_known(options: Mapping[str, str], *, passed_on: tuple[str, ...] = ()) -> None:
    """InvalidConfigError for an option that a job does not read: misspelt, the default would hold.

    `passed_on` are what keys begin with that others know.
    """
    for name in options:
        if name not in KEYS and not name.startswith((CLIENT_PREFIX, *passed_on)):
            (nearest,) = difflib.get_close_matches(name, KEYS, n=1, cutoff=0)
            raise InvalidConfigError("unknown option", option=name, nearest=nearest)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGINT and SIGTERM raise KeyboardInterrupt, so that nothing is left behind.

    Some libraries put an error of their own in its place: a Kafka consumer that is being made, a
    connection with Spark that ends. A program that a signal has reached exits as by the signal.
    """
    received: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:  # a second one doesn't cut off what is being cleared away
            signal.signal(number, signal.SIG_IGN)
        received.append(number)
        logging.disable()  # what talks with Spark logs at length that it was interrupted
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        if received:
            sys.exit(128 + received[0])


def run_job(name: str, job: Callable[[], int]) -> None:
    """Run it and exit; an error of ours, of a disk, or one that Spark hands on, is one line."""
    try:
        with _ended_by_signals():
            sys.exit(job())
    except TieredStorageError as error:
        sys.stderr.write(f"{name}: {' '.join(str(error).split())}\n")
        sys.exit(2 if isinstance(error, InvalidConfigError) else 1)
    except SPARK_ERRORS as error:
        sys.stderr.write(f"{name}: {cause_of(error)}\n")
        sys.exit(1)
    except OSError as error:
        sys.stderr.write(f"{name}: {error}\n")
        sys.exit(1)
