"""Requests the reports of a cluster's managers on a topic's partitions, as commands do."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from rlm.cli.invocation.manager_access import manager_client
from rlm.cli.invocation.managers import live_managers
from rlm.cli.invocation.session import open_session
from rlm.config.load import load_command_config
from rsm.segment.errors import TieredStorageError

_TIMEOUT_MS = 10_000


def manager_reports(configuration: Path, topic: str) -> list[dict[str, Any]]:
    """Return a report for each hosted partition; empty while a manager does not answer."""
    try:
        with open_session(load_command_config(configuration), timeout_ms=_TIMEOUT_MS) as session:
            managers = live_managers(session.metadata, session.clock)
            with closing(manager_client(session)) as client:
                return [
                    dict(report.to_json())
                    for manager in managers
                    for report in client.partitions(manager, topic=topic)
                ]
    except TieredStorageError:
        return []
