"""Runs pytest on tests in a directory of its own, with plugins of this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.tree import CHECKOUT


def run_pytest(
    directory: Path, conftest: str, *arguments: str, workers: str = "0", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the tests that `arguments` select. No variable of the outer run reaches them."""
    (directory / "conftest.py").write_text(conftest)
    own = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", workers, "-p", "no:randomly", *arguments],
        cwd=directory,
        env={**own, "PYTHONPATH": str(CHECKOUT), **environment},
        capture_output=True,
        text=True,
        timeout=300.0,
        check=False,
    )
