"""`rlm status` against a real broker without a manager."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

from tests.integration.rlm.cli.rlm_command import Rlm
from tests.services.kafka import KafkaCluster


def test_status_when_no_manager_runs_then_the_problem_the_next_command_and_exit_1(
    kafka: KafkaCluster, rlm: Rlm, topic_name: str
) -> None:
    kafka.create_topic(topic_name)
    assert rlm("set", topic_name).returncode == 0

    plain, checked = rlm.run("status", topic_name), rlm.run("status", "--check", "--json")

    assert (plain.returncode, checked.returncode) == (1, 1)
    assert plain.stdout.startswith("1 problem\n\nmanager of broker ")
    assert "no live manager is registered" in plain.stdout
    shown = plain.stdout.replace(" \\\n     ", "")  # a command that a shell continues
    assert f"  > rlm processes --config {rlm.config}\n" in shown
    (problem,) = json.loads(checked.stdout)["problems"]
    assert (problem["kind"], problem["partitions"]) == ("manager_silent", [f"{topic_name}:0"])


def test_status_when_nothing_is_tiered_then_no_problem_and_exit_0(rlm: Rlm) -> None:
    done = rlm.run("status", "--check")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no problems\n\n0 topics, 0 partitions\n")


def test_status_when_watched_through_a_pipe_then_round_after_round_until_interrupted(
    rlm: Rlm,
) -> None:
    command = [sys.executable, "-m", "rlm", "status", "--watch", "--interval", "1"]
    with subprocess.Popen(
        [*command, "--config", str(rlm.config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        rounds = 0
        while rounds < 2:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            rounds += line == "no problems\n"

        process.send_signal(signal.SIGINT)

        assert (process.wait(20), process.stderr.read()) == (130, "")


def test_status_when_options_exclude_each_other_then_says_so_before_it_connects(rlm: Rlm) -> None:
    rlm.config.write_text("bootstrap.servers=127.0.0.1:1\n")

    done = rlm.run("status", "--watch", "--check")

    assert done.returncode == 2
    assert "--watch excludes --check and --json" in done.stderr
