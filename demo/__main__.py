"""Runs the demo: `python -m demo [--stream] [--keep]`.

The exit code is 0 if the read records equal the produced ones, 1 with a reason after a failure, and
130 if Ctrl-C or SIGTERM ended the demo early. In all three cases, the demo first stops its
processes.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from demo.failure import DemoFailedError
from demo.narration import Narrator
from demo.phases import TOPIC, DemoSizes
from demo.scenario import Scenario
from demo.stage import DemoStage, services
from demo.stream_scenario import StreamScenario
from rlm.cli.invocation.ending import Interrupt
from tests.services.rlm_run import RLM

_MB = 1_000_000
_BUILD = Path(__file__).resolve().parents[1] / "build"


def main() -> int:
    """Run the demo that the command line selects; return the exit code."""
    options = _options()
    sizes = DemoSizes(total_bytes=options.megabytes * _MB)
    # After SIGTERM the demo cleans up as after Ctrl-C.
    interrupt = Interrupt(signal.SIGTERM)
    narrator = Narrator(Console())
    try:
        _run(
            StreamScenario if options.stream else Scenario,
            sizes,
            narrator,
            options.directory,
            keep=options.keep,
        )
    except DemoFailedError as error:
        print(f"demo: failed: {error}", file=sys.stderr)
        return 1
    except (Exception, KeyboardInterrupt):
        if not interrupt.is_received:
            raise
        print("demo: interrupted", file=sys.stderr)
        return 130
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="keep everything running until Ctrl-C")
    parser.add_argument(
        "--stream",
        action="store_true",
        help="stream the topic, kill the broker, delete its disk, and read only the store",
    )
    parser.add_argument(
        "--megabytes",
        type=int,
        default=DemoSizes().total_bytes // _MB,
        help="MB of records to produce (default: %(default)s)",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=_BUILD,
        help="parent of the demo's new directory (default: build/ of the checkout)",
    )
    return parser.parse_args()


def _run(
    kind: type[Scenario | StreamScenario],
    sizes: DemoSizes,
    narrator: Narrator,
    parent: Path,
    *,
    keep: bool,
) -> None:
    started = time.monotonic()
    narrator.say("starting a Kafka broker, and `rlm run` next to it")
    with services(parent, keep_files=keep) as stage:
        if keep:
            narrator.say(f"files are kept in {os.path.relpath(stage.directory)}")
        try:
            outcome = kind(stage, sizes, narrator).run()
        except DemoFailedError as error:
            raise DemoFailedError(f"{error}\n{stage.rlm.log_tail()}") from error
        seconds = time.monotonic() - started
        outcome.print_table(narrator.console)
        if keep:
            narrator.say(_what_next(stage) if kind is Scenario else _what_is_left(stage))
        narrator.say(outcome.last_line(seconds))
        if keep:
            _wait_for_interrupt()
            narrator.say("stopping")


def _wait_for_interrupt() -> None:
    try:
        while True:
            signal.pause()
    except KeyboardInterrupt:
        # A second Ctrl-C must not interrupt the cleanup, which takes a few seconds.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _what_next(stage: DemoStage) -> str:
    rlm = os.path.relpath(RLM)
    with_config = f"--config {os.path.relpath(stage.rlm.configuration)}"
    return f"""
running until Ctrl-C:
  broker    {stage.cluster.bootstrap_servers}
  gateway   {stage.rlm.gateway_address}
  metrics   {stage.rlm.metrics_url}/metrics
  store     {os.path.relpath(stage.rlm.store)}
  logs      {os.path.relpath(stage.rlm.log_path)}
try next:
  {rlm} status {with_config}
  {rlm} topic list {with_config}
  {rlm} read {TOPIC}:0 --from 0 --to 10 {with_config}
"""


def _what_is_left(stage: DemoStage) -> str:
    rlm = os.path.relpath(RLM)
    return f"""
kept even after Ctrl-C, without a broker:
  store     {os.path.relpath(stage.rlm.store)}
  logs      {os.path.relpath(stage.rlm.log_path)}
try next:
  {rlm} read {TOPIC}:0 --from-store --to 10 --config {os.path.relpath(stage.store_configuration())}
"""


if __name__ == "__main__":
    sys.exit(main())
