from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlm.cli.invocation.options import command_config, reaching_cluster
from rsm.segment.errors import FencedError, InvalidConfigError, RetriableError


def test_command_config_when_given_a_cluster_then_needs_no_file() -> None:
    config = command_config(None, "a:9092", None, {})

    assert config.cluster.bootstrap_text == "a:9092"


def test_command_config_when_given_a_malformed_address_then_names_the_option() -> None:
    with pytest.raises(InvalidConfigError, match=r"option=--bootstrap-server.*found='a'"):
        command_config(None, "a", None, {})


@pytest.mark.parametrize(
    ("config", "server", "client"),
    [
        (Path("f"), "a:1", None),
        (Path("f"), None, Path("c")),
        (None, None, Path("c")),
    ],
)
def test_command_config_when_options_contradict_then_refuses(
    config: Path | None, server: str | None, client: Path | None
) -> None:
    with pytest.raises(InvalidConfigError, match="--bootstrap-server"):
        command_config(config, server, client, {})


def test_command_config_when_the_environment_names_a_file_then_reads_it(tmp_path: Path) -> None:
    named = tmp_path / "rlm.properties"
    named.write_text("bootstrap.servers=of-file:1\n")

    config = command_config(None, None, None, {"RLM_CONFIG": str(named)})

    assert config.cluster.bootstrap_text == "of-file:1"


def test_command_config_when_given_a_cluster_then_ignores_the_environments_file() -> None:
    config = command_config(None, "a:9092", None, {"RLM_CONFIG": "/missing"})

    assert config.cluster.bootstrap_text == "a:9092"


def _program(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rlm", "storage", "check", "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_command_when_the_environment_names_its_file_then_needs_no_option(tmp_path: Path) -> None:
    named = tmp_path / "rlm.properties"
    named.write_text(
        f"bootstrap.servers=a:1\nrsm.config.storage.filesystem.root={tmp_path}\n"
        "rsm.config.storage.backend=filesystem\n"
    )

    done = _program({"RLM_CONFIG": str(named)})

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["ok"] is True


def test_command_when_the_environments_file_is_missing_then_one_line_says_where_it_is_from(
    tmp_path: Path,
) -> None:
    missing = tmp_path / "missing"

    done = _program({"RLM_CONFIG": str(missing)})

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "rlm: cannot read the configuration file: it does not exist or is not accessible "
        f"(file={missing}). Correct or unset the environment variable RLM_CONFIG.\n"
    )


def test_reaching_cluster_when_it_cannot_be_then_names_its_address() -> None:
    config = command_config(None, "a:9092", None, {})

    with (
        pytest.raises(InvalidConfigError, match="bootstrap_servers=a:9092"),
        reaching_cluster(config),
    ):
        raise RetriableError("timed out")


def test_reaching_cluster_when_another_error_is_raised_then_lets_it_pass() -> None:
    config = command_config(None, "a:9092", None, {})

    with pytest.raises(FencedError), reaching_cluster(config):
        raise FencedError("not the leader")
