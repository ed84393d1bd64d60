"""Writes the state of this version: `make released-state`, after the version was raised."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.released_states.directories import STATES, StateDirectory, current_version
from tests.released_states.writer import write_state


def main(arguments: Sequence[str], states: Path = STATES) -> int:
    """Write the directory of the version in pyproject.toml. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.released_states", description=__doc__)
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace the state of this version; never after it was released",
    )
    is_forced = parser.parse_args(arguments).force
    version = current_version()
    target = states / version
    if target.exists() and not is_forced:
        sys.stderr.write(
            f"cannot write {target}: it exists (version={version}). "
            "Raise the version in pyproject.toml, or use --force if it is not released.\n"
        )
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        written = StateDirectory(Path(scratch) / "state")
        write_state(written, version=version, scratch=Path(scratch))
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(written.path, target)
    sys.stdout.write(f"wrote {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
