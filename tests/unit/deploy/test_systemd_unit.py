"""The systemd unit: systemd reads it, and it agrees with the product and the configurations."""

from __future__ import annotations

import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[3]
_UNIT = _CHECKOUT / "deploy" / "systemd" / "rlm.service"


def _service() -> dict[str, str]:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # the way to keep capitals
    parser.read(_UNIT)
    return dict(parser["Service"])


def test_unit_when_systemd_reads_it_then_has_no_complaint(tmp_path: Path) -> None:
    """Hosts without systemd check the parts below only."""
    unit = tmp_path / _UNIT.name
    unit.write_text(_UNIT.read_text().replace("/opt/rlm/bin/rlm", sys.executable))

    assert _complaints(unit) == ""


def test_unit_when_it_ends_rlm_then_waits_longer_than_rlm_needs() -> None:
    service = _service()

    assert int(service["TimeoutStopSec"]) > 20
    assert service["KillMode"] == "mixed"
    assert service["RestartPreventExitStatus"] == "2"


def test_unit_when_it_makes_directories_then_they_are_those_of_the_configurations() -> None:
    service = _service()
    text = (_CHECKOUT / "deploy" / "configurations" / "s3-sasl-ssl.properties").read_text()

    assert f"state.dir=/var/lib/{service['StateDirectory']}\n" in text
    assert f"cache.path=/var/cache/{service['CacheDirectory']}/" in text
    assert "--config /etc/rlm/rlm.properties" in service["ExecStart"]


def _complaints(unit: Path) -> str:
    program = shutil.which("systemd-analyze")
    if program is None:
        return ""
    done = subprocess.run(
        [program, "verify", str(unit)], capture_output=True, text=True, check=False, timeout=60.0
    )
    return done.stdout + done.stderr
