"""Installs the example distribution of plug-ins, as its user does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_SOURCE = Path(__file__).resolve().parents[1] / "plugin_example"


def install_example(directory: Path) -> Path:
    """Install it without a network; return the directory that belongs on Python's path."""
    source, installed = directory / "source", directory / "installed"
    shutil.copytree(_SOURCE, source)  # a build leaves files in its source
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(installed)]
    subprocess.run([*command, str(source)], check=True, capture_output=True, timeout=120)
    return installed
