"""Ctrl-C and SIGTERM in a job as a user starts it, with its own Spark."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.integration.spark_tools.repair_program import killed_at_exit
from tests.integration.spark_tools.repair_world import RepairWorld
from tests.metadata_builder import DELETE_STARTED, FINISHED
from tests.services.waiting import wait_until


def test_repair_when_interrupted_then_exit_code_130_and_no_stack_trace_of_python(
    host: BrokerHost, world: RepairWorld, connector: Path, tmp_path: Path
) -> None:
    with host.metadata() as metadata:
        world.claim(metadata)
        world.send(world.store(metadata, DELETE_STARTED))
    checkpoint = str(tmp_path / "checkpoint")
    settings = ("--yes", "--jars", str(connector), "--checkpoint", checkpoint, "--interval", "1")

    with killed_at_exit(world, tmp_path, *settings) as process:
        wait_until(lambda: not world.names(), deadline_s=120.0)
        process.signal_group(signal.SIGINT)
        code = process.wait(deadline_s=60.0)

    assert code == 130
    assert "KeyboardInterrupt" not in (tmp_path / "repair.log").read_text()


@pytest.mark.parametrize("with_spark", [False, True])
def test_audit_when_terminated_then_exit_code_143_and_its_temporary_files_are_gone(
    host: BrokerHost, world: RepairWorld, tmp_path: Path, *, with_spark: bool
) -> None:
    """Kubernetes ends the program like this; systemd also ends the program's children."""
    with host.metadata() as metadata:
        world.claim(metadata)
        world.store(metadata, FINISHED)

    with killed_at_exit(world, tmp_path, program="rlm-audit") as process:
        wait_until(lambda: any(tmp_path.glob("rlm-audit-*")), deadline_s=120.0)
        if with_spark:
            process.signal_group(signal.SIGTERM)
        code = process.terminate(deadline_s=60.0)

    said = (tmp_path / "repair.log").read_text()
    assert (code, list(tmp_path.glob("rlm-audit-*"))) == (143, []), said
    assert "Terminated" not in said
