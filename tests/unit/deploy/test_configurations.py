"""The example configurations: `rlm config check` accepts each on a host with the named files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from rlm.cli.main import build_app
from rlm.config.load import config_problems, load_config
from rsm.config.choices import Backend
from tests.log_dir_builder import make_log_dir
from tests.services.certificates import CertificateAuthority

_ROOM = Path(__file__).resolve().parents[3] / "deploy" / "configurations"
_NAMES = sorted(path.stem for path in _ROOM.glob("*.properties"))
_COMMENTED_OUT = re.compile(r"(?m)^#(?=[\w.]+=)")
_COMMAND = typer.main.get_command(build_app())


def _text(name: str) -> str:
    return (_ROOM / f"{name}.properties").read_text()


@pytest.mark.parametrize("name", _NAMES)
def test_example_when_checked_on_a_host_with_its_files_then_is_accepted(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rlm.properties"
    path.write_text(_on_host(_text(name), tmp_path))
    path.chmod(0o600)

    _COMMAND.main(
        ["config", "check", "--config", str(path)], prog_name="rlm", standalone_mode=False
    )

    assert capsys.readouterr() == (f"{path}: ok\n", "")


@pytest.mark.parametrize("name", _NAMES)
def test_example_when_its_commented_settings_are_used_then_all_exist(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / "rlm.properties"
    path.write_text(_COMMENTED_OUT.sub("", _text(name)))

    assert config_problems(path) == ()


def test_examples_when_read_then_there_is_one_for_each_built_in_store() -> None:
    backends = {load_config(_ROOM / f"{name}.properties").storage.backend for name in _NAMES}

    assert backends == set(Backend)


def _on_host(text: str, root: Path) -> str:
    """Create the files and directories below `root`; return the settings with paths to these."""
    make_log_dir(root / "var/lib/kafka/data")
    (root / "mnt/archive").mkdir(parents=True)
    authority = CertificateAuthority(root / "etc/rlm")
    authority.issue("gateway", subject_alternative="DNS:broker1").keystore.chmod(0o600)
    authority.certificate.rename(root / "etc/rlm/ca.pem")
    return re.sub(r"(?m)^([^#=\n]+)=(/(?:var|mnt|etc)/.*)$", rf"\1={root}\2", text)
