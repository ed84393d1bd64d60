"""The systemd unit agrees with `rlm` and the example configurations."""

from __future__ import annotations

import re
import shlex
from configparser import ConfigParser
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[3]
_UNIT = _CHECKOUT / "deploy" / "systemd" / "rlm.service"
_PAGE = (_CHECKOUT / "docs" / "deployment.md").read_text()


def _section(name: str) -> dict[str, str]:
    # Not strict: a unit may have several lines of one name.
    parser = ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # the way to keep capitals
    parser.read(_UNIT)
    return dict(parser[name])


def _service() -> dict[str, str]:
    return _section("Service")


def test_unit_when_it_ends_rlm_then_waits_longer_than_rlm_needs() -> None:
    service = _service()

    assert int(service["TimeoutStopSec"]) > 20
    assert service["KillMode"] == "mixed"
    assert service["RestartPreventExitStatus"] == "2"


def test_unit_when_the_host_is_not_ready_for_long_then_systemd_does_not_give_up() -> None:
    assert _section("Unit")["StartLimitIntervalSec"] == "0"
    assert _service()["Restart"] == "on-failure"


def test_unit_when_it_makes_directories_then_they_are_those_of_the_configurations() -> None:
    service = _service()
    text = (_CHECKOUT / "deploy" / "configurations" / "s3-sasl-ssl.properties").read_text()

    assert f"state.dir=/var/lib/{service['StateDirectory']}\n" in text
    assert f"cache.path=/var/cache/{service['CacheDirectory']}/" in text
    assert "--config /etc/rlm/rlm.properties" in service["ExecStart"]


def test_store_when_checked_as_documented_then_has_user_and_environment_of_the_unit() -> None:
    service = _service()
    (command,) = re.findall(r"(?m)^    (systemd-run (?:.*\\\n)*.* storage check)$", _PAGE)

    words = shlex.split(command)
    assert f"--uid={service['User']}" in words
    assert words[words.index("-p") + 1] == f"EnvironmentFile={service['EnvironmentFile']}"
    assert words[-3] == service["ExecStart"].split()[0]


def test_packages_when_installed_as_documented_then_each_is_pinned_by_hash() -> None:
    commands = re.findall(r"(?m)^    \S+/pip install (.+)$", _PAGE)

    assert commands == [
        "--require-hashes -r requirements.txt -r requirements-image.txt",
        "--no-deps --no-build-isolation .",
    ]
