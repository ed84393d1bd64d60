"""Finds the configuration file if `--config` is not given: RLM_CONFIG's, or the system's.

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
    """Return the configuration file to read if `--config` is not given; None if there is none.

    An empty variable counts as unset. Raises InvalidConfigError if the variable names a file that
    is missing or inaccessible. It then ignores the system's file, which may be for another cluster.
    """
    named = environment.get(CONFIG_VARIABLE, "")
    if named:
        if not os.path.exists(named):  # noqa: PTH110 - Path.exists raises without permission
            raise InvalidConfigError(
                "cannot read the configuration file: it does not exist or is not accessible",
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

    Raises InvalidConfigError as it does, and also if there is no file; that error lists all ways to
    give one. `alternative` names an option that can replace the file.
    """
    found = find_config_file(environment, system_config=system_config)
    if found is None:
        ways = f"Give --config FILE, set {CONFIG_VARIABLE}, or create {system_config}"
        also = f"; or give {alternative}" if alternative else ""
        raise InvalidConfigError("no configuration file is given", advice=f"{ways}{also}")
    return found
