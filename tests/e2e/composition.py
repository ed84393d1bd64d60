"""Runs a manager process with external systems that a test has changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from rlm.app.broker_manager import BrokerManager
from rlm.app.manager import compose
from rlm.app.manager_process import run_manager
from rlm.config.load import Config, load_config
from rlm.metrics.metrics import Metrics
from rlm.rest.api_listener import ApiListener
from rlm.worker.external import ExternalSystems, open_external_systems
from rlm.worker.log_lines import configure_logging
from rsm.system_clock import SystemClock


def run_changed_manager(
    config_path: Path, change: Callable[[ExternalSystems], ExternalSystems]
) -> None:
    """Run like `rlm manager-process --config`, with the external systems that `change` returns."""

    def build(config: Config, listener: ApiListener, metrics: Metrics) -> BrokerManager:
        external = change(open_external_systems(config, SystemClock()))
        return compose(config, external, listener, metrics)

    configure_logging("INFO", sys.stderr)
    run_manager(
        lambda: load_config(config_path), build, probe_fd=None, rest_fd=None, supervised=False
    )
