"""A Python process whose output a test reads, and which does not outlive the test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def python_process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the interpreter with these arguments; its streams are pipes."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
