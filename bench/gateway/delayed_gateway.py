"""A gateway whose store takes its time: `--config FILE --delay-ms N` runs one.

It reads the directory that `rlm run` has filled, each request of it delayed. All else is the
product's own: it is the gateway that serves a whole cluster from any host.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from bench.gateway.processes import ProcessGroup, process_tree
from bench.gateway.stage import Stage
from rlm.config.load import load_gateway_config
from rlm.config.storage import StorageConfig
from rlm.gateway_app import build_gateway
from rlm.gateway_process import run_gateway
from rlm.log_lines import configure_logging
from rlm.outside import open_chunk_storage
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.observed import ObservedChunkStorage
from tests.services.ports import free_ports
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_CHECKOUT = Path(__file__).resolve().parents[2]
_READY_DEADLINE_S = 60.0
_BROKER_ID = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedGateway:
    """One that is ready; `address` leads to the broker."""

    address: str
    processes: ProcessGroup


def delayed(storage: ChunkStorage, delay_ms: int) -> ChunkStorage:
    """The same store, each request of which ends so much later."""
    return ObservedChunkStorage(storage, lambda _operation, _result: time.sleep(delay_ms / 1000))


@contextmanager
def running_delayed_gateway(stage: Stage) -> Iterator[DelayedGateway]:
    """A new one, with nothing in its caches."""
    ports = free_ports(3)
    listener, door, rest = (f"127.0.0.1:{port}" for port in ports)
    configuration = stage.dataset.scratch / f"delayed-{ports[0]}.properties"
    properties = _properties(stage.rlm.configuration) | {
        "gateway.listener": listener,
        "gateway.node.listeners": f"{_BROKER_ID}={door}",
        "rest.listener": rest,
        "state.dir": str(configuration.with_suffix(".state")),
    }
    del properties["log.dirs"], properties["metrics.listener"]
    configuration.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    process = ServiceProcess(
        [
            *(sys.executable, "-m", "bench.gateway.delayed_gateway"),
            *("--config", str(configuration), "--delay-ms", str(stage.sizes.delay_ms)),
        ],
        log_path=configuration.with_suffix(".log"),
        directory=_CHECKOUT,
    )
    try:
        wait_until(lambda: _is_ready(rest, process), _READY_DEADLINE_S, process.log_tail)
        yield DelayedGateway(address=door, processes=process_tree(process.pid))
    finally:
        process.terminate()


def _properties(configuration: Path) -> dict[str, str]:
    lines = configuration.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def _is_ready(rest: str, process: ServiceProcess) -> bool:
    if process.exit_code() is not None:
        raise RuntimeError(f"the delayed gateway has ended:\n{process.log_tail()}")
    try:
        answer = httpx.get(f"http://{rest}/readyz", timeout=5.0, trust_env=False)
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--delay-ms", type=int, required=True)
    options = parser.parse_args()

    def open_store(config: StorageConfig) -> ChunkStorage:
        return delayed(open_chunk_storage(config), options.delay_ms)

    configure_logging("INFO", sys.stderr)
    run_gateway(
        lambda: load_gateway_config(options.config),
        partial(build_gateway, open_store=open_store),
        gateway_fd=None,
        rest_fd=None,
        supervised=False,
    )


if __name__ == "__main__":
    _main()
