"""Installs the example distribution of plug-ins, as a user does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_SOURCE = Path(__file__).resolve().parents[1] / "plugin_example"


def install_example(directory: Path) -> Path:
    """Install the example without a network; return the directory to put on Python's path."""
    source, installed = directory / "source", directory / "installed"
    shutil.copytree(_SOURCE, source)  # a build would leave files in the checkout
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(installed)]
    subprocess.run([*command, str(source)], check=True, capture_output=True, timeout=120)
    return installed
