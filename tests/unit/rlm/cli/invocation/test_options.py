from __future__ import annotations

from pathlib import Path

import pytest

from rlm.cli.invocation.options import command_config, reaching_cluster
from rsm.segment.errors import FencedError, InvalidConfigError, RetriableError


def test_command_config_when_given_a_cluster_then_needs_no_file() -> None:
    config = command_config(None, "a:9092", None)

    assert config.cluster.bootstrap_text == "a:9092"


def test_command_config_when_given_a_malformed_address_then_names_the_option() -> None:
    with pytest.raises(InvalidConfigError, match=r"file=--bootstrap-server.*found='a'"):
        command_config(None, "a", None)


@pytest.mark.parametrize(
    ("config", "server", "client"),
    [
        (None, None, None),
        (Path("f"), "a:1", None),
        (Path("f"), None, Path("c")),
    ],
)
def test_command_config_when_options_contradict_then_refuses(
    config: Path | None, server: str | None, client: Path | None
) -> None:
    with pytest.raises(InvalidConfigError):
        command_config(config, server, client)


def test_reaching_cluster_when_it_cannot_be_then_names_its_address() -> None:
    config = command_config(None, "a:9092", None)

    with (
        pytest.raises(InvalidConfigError, match="bootstrap_servers=a:9092"),
        reaching_cluster(config),
    ):
        raise RetriableError("timed out")


def test_reaching_cluster_when_another_error_is_raised_then_lets_it_pass() -> None:
    config = command_config(None, "a:9092", None)

    with pytest.raises(FencedError), reaching_cluster(config):
        raise FencedError("not the leader")
