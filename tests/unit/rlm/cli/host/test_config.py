"""`rlm config check` and `rlm config show`, by their output and exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer

from rlm.cli.host.config import config_warnings, setting_lines
from rlm.cli.main import build_app
from rlm.config.effective import MASK, EffectiveSetting
from rlm.config.load import load_config
from rsm.segment.errors import InvalidConfigError, RetriableError
from tests.unit.rlm.cli.golden_text import assert_golden

COMMAND = typer.main.get_command(build_app())
SECRET = "s3cr3t-value"  # noqa: S105 - looked for in outputs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that `rlm run` accepts."""
    log_dir, store = tmp_path / "kafka", tmp_path / "store"
    log_dir.mkdir()
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n")
    store.mkdir()
    path = tmp_path / "rlm.properties"
    path.write_text(
        f"bootstrap.servers=a:9092\nlog.dirs={log_dir}\nstate.dir={tmp_path / 'state'}\n"
        f"rsm.config.storage.filesystem.root={store}\n"
    )
    path.chmod(0o600)
    return path


def _config(*arguments: str) -> int:
    code = COMMAND.main(["config", *arguments], prog_name="rlm", standalone_mode=False)
    assert isinstance(code, int | None)
    return code or 0


def test_check_when_rlm_run_accepts_the_file_then_ok(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _config("check", "--config", str(path)) == 0

    assert capsys.readouterr().out == f"{path}: ok\n"
    assert not (path.parent / "state").exists()


def test_warnings_when_the_disk_of_the_state_directory_is_nearly_full_then_one_of_it(
    path: Path,
) -> None:
    config = load_config(path)
    asked: list[Path] = []

    def nearly_full(state_dir: Path) -> RetriableError:
        asked.append(state_dir)
        return RetriableError("the disk is nearly full", advice="Make room")

    assert config_warnings(config, path, nearly_full) == ["the disk is nearly full. Make room."]
    assert asked == [config.host.state_dir]


def test_check_when_the_file_has_several_problems_then_all_at_once(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with path.open("a") as file:
        file.write("logging.level=LOUD\nunknown=1\nremote.copy.verify=x\nbootstrap.servers=a\n")

    assert _config("check", "--config", str(path)) == 2

    problems = capsys.readouterr().err.splitlines()
    assert [re.split("[,)]", each.partition("key=")[2])[0] for each in problems] == [
        "unknown",
        "bootstrap.servers",
        "remote.copy.verify",
        "logging.level",
    ]
    assert all(problem.startswith("rlm: ") for problem in problems)


def test_check_when_the_host_does_not_fit_then_every_problem_of_the_host(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path.parent / "store").rmdir()
    with path.open("a") as file:
        file.write("rest.ssl.keystore.location=/missing.pem\n")

    assert _config("check", "--json", "--config", str(path)) == 2

    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert [each["values"]["key"] for each in document["problems"]] == [
        "rsm.config.storage.filesystem.root",
        "rest.ssl.keystore.location",
    ]


def test_check_when_defaults_of_topics_contradict_each_other_then_their_problem(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with path.open("a") as file:
        file.write("log.retention.ms=1000\nlog.local.retention.ms=1001\n")

    assert _config("check", "--config", str(path)) == 2

    assert "at most log.retention.ms=1000" in capsys.readouterr().err


def test_check_when_a_plugin_cannot_be_loaded_then_its_problem(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with path.open("a") as file:
        file.write("rsm.config.layout=no.such:Layout\n")

    assert _config("check", "--config", str(path)) == 2

    assert "no.such:Layout" in capsys.readouterr().err


def test_check_when_other_users_can_read_secrets_then_a_warning_without_them(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with path.open("a") as file:
        file.write(f"client.sasl.password={SECRET}\n")

    assert _config("check", "--json", "--config", str(path)) == 0

    assert SECRET not in capsys.readouterr().out


def test_show_when_only_changed_then_lines_of_the_file_without_secrets(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with path.open("a") as file:
        file.write(f"client.sasl.password={SECRET}\n")

    assert _config("show", "--changed", "--config", str(path)) == 0

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "bootstrap.servers=a:9092  (line 1)"
    assert f"client.sasl.password={MASK}  (line 5)" in shown
    assert len(shown) == 5


def test_show_when_json_then_every_setting_with_its_origin(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _config("show", "--json", "--config", str(path)) == 0

    document = json.loads(capsys.readouterr().out)
    found = {each["key"]: each for each in document["settings"]}
    assert found["bootstrap.servers"]["origin"] == "file"
    assert found["logging.level"] == {
        "key": "logging.level",
        "value": "INFO",
        "origin": "default",
        "line": None,
    }


def test_lines_when_settings_are_shown_then_as_reviewed() -> None:
    settings = (
        EffectiveSetting(key="bootstrap.servers", value="broker1:9092", line=1),
        EffectiveSetting(key="client.sasl.password", value=MASK, line=12),
        EffectiveSetting(key="state.dir", value="none"),
    )

    assert_golden("config_show.txt", setting_lines(settings))


@pytest.mark.parametrize("arguments", [("config", "show"), ("run",), ("status",)], ids=" ".join)
def test_command_when_a_setting_is_wrong_then_names_the_command_that_reports_all(
    path: Path, arguments: tuple[str, ...]
) -> None:
    with path.open("a") as file:
        file.write("remote.copy.verify=x\nbootstrap.servers=a\n")

    with pytest.raises(InvalidConfigError) as error:
        COMMAND.main([*arguments, "--config", str(path)], prog_name="rlm", standalone_mode=False)

    assert str(error.value).endswith(f"`rlm config check --config {path}` reports all problems.")
