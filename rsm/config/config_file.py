"""Finds the configuration file of a program without `--config`: RLM_CONFIG, or the system's file.

The caller passes the environment and parses the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rsm.segment.errors import InvalidConfigError

CONFIG_VARIABLE = "RLM_CONFIG"
SYSTEM_CONFIG = Path("/etc/rlm/rlm.properties")
CONFIG_HELP = f"Configuration file (default: ${CONFIG_VARIABLE}, then {SYSTEM_CONFIG})."


def find_config_file(
    environment: Mapping[str, str], *, system_config: Path = SYSTEM_CONFIG
) -> Path | None:
    """Return the file that a program without `--config` reads; None if there is none.

    An empty variable counts as unset. Raises InvalidConfigError if the variable names a file that
    is missing or inaccessible, even if the system has a file, which could be for another cluster.
    """
    named = environment.get(CONFIG_VARIABLE, "")
    if named:
        if not os.path.exists(named):  # noqa: PTH110 - Path.exists raises without permission
            raise InvalidConfigError(
                "configuration file does not exist or cannot be accessed",
                file=named,
                advice=f"Correct or unset the environment variable {CONFIG_VARIABLE}",
            )
        return Path(named)
    return system_config if os.path.exists(system_config) else None  # noqa: PTH110 - as above


def require_config_file(
    environment: Mapping[str, str],
    *,
    system_config: Path = SYSTEM_CONFIG,
    alternative: str = "",
) -> Path:
    """Return the file as `find_config_file` does.

    Raises its errors, and InvalidConfigError with all ways to give a file if there is none.
    `alternative` names an option that replaces the file.
    """
    found = find_config_file(environment, system_config=system_config)
    if found is None:
        ways = f"Give --config FILE, set {CONFIG_VARIABLE}, or create {system_config}"
        also = f"; or give {alternative}" if alternative else ""
        raise InvalidConfigError("no configuration file is given", advice=f"{ways}{also}")
    return found
