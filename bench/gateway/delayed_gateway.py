"""Runs a gateway with a slow store: the store of `rlm run`, with a delay for each request.

The gateway serves the whole cluster. The benchmark starts it with `rlm gateway`, as a user would.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.gateway.processes import ProcessGroup, process_tree
from bench.gateway.stage import GatewayStage
from tests.services import plain_http
from tests.services.ports import free_ports
from tests.services.process import ServiceProcess
from tests.services.rlm_run import RLM
from tests.services.waiting import wait_until

_READY_DEADLINE_S = 60.0
_BROKER_ID = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedGateway:
    """Represents a ready gateway: its endpoint, its configuration file and its processes."""

    address: str
    configuration: Path
    processes: ProcessGroup


@contextmanager
def running_delayed_gateway(stage: GatewayStage) -> Iterator[DelayedGateway]:
    """Yield a new gateway with empty caches; stop it at the end."""
    ports = free_ports(3)
    listener, endpoint, rest = (f"127.0.0.1:{port}" for port in ports)
    configuration = stage.dataset.scratch / f"delayed-{ports[0]}.properties"
    properties = _properties(stage.rlm.configuration) | {
        "gateway.listener": listener,
        "gateway.node.listeners": f"{_BROKER_ID}={endpoint}",
        "rest.listener": rest,
        "state.dir": str(configuration.with_suffix(".state")),
        "rsm.config.storage.slow.delay.ms": str(stage.sizes.delay_ms),
    }
    del properties["log.dirs"], properties["metrics.listener"]
    configuration.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    process = ServiceProcess(
        [RLM, "gateway", "--config", str(configuration)],
        log_path=configuration.with_suffix(".log"),
    )
    try:
        wait_until(lambda: _is_ready(rest, process), _READY_DEADLINE_S, process.log_tail)
        yield DelayedGateway(
            address=endpoint, configuration=configuration, processes=process_tree(process.pid)
        )
    finally:
        process.terminate()


def _properties(configuration: Path) -> dict[str, str]:
    lines = configuration.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def _is_ready(rest: str, process: ServiceProcess) -> bool:
    if process.exit_code() is not None:
        raise RuntimeError(f"cannot start the delayed gateway: it ended\n{process.log_tail()}")
    try:
        answer = plain_http.get(f"http://{rest}/readyz")
    except httpx.HTTPError:
        return False
    return answer.status_code == 200
