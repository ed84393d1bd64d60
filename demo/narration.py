"""Prints the demo's progress: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

_MB = 1_000_000
_LINE_INTERVAL_S = 2.0

Report = Callable[[float, str], None]


class Narrator:
    """Prints messages and progress for a user. Not thread-safe."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def say(self, text: str) -> None:
        """Print a text of one or more lines."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def step(self, title: str) -> Iterator[Report]:
        """Show a phase's progress. Yields a function that shows the finished share and a remark."""
        if self.console.is_terminal:
            with self._bar(title) as report:
                yield report
        else:
            self.say(f"{title} ...")
            yield self._line_reporter()

    @contextmanager
    def _bar(self, title: str) -> Iterator[Report]:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[remark]}", markup=False),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console) as progress:
            task = progress.add_task(f"{title:<34}", total=1.0, remark="")

            def report(share: float, remark: str) -> None:
                progress.update(task, completed=min(share, 1.0), remark=remark)

            yield report

    def _line_reporter(self) -> Report:
        next_at = time.monotonic() + _LINE_INTERVAL_S

        def report(share: float, remark: str) -> None:
            nonlocal next_at
            if share >= 1.0 or time.monotonic() >= next_at:
                next_at = time.monotonic() + _LINE_INTERVAL_S
                self.say(f"  {min(share, 1.0):4.0%}  {remark}")

        return report


def megabytes(count_bytes: float) -> str:
    """Format a number of bytes in MB."""
    return f"{count_bytes / _MB:,.1f} MB"
