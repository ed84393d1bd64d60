"""The systemd unit, as systemd itself reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.services.service import Needs, program

_UNIT = Path(__file__).resolve().parents[3] / "deploy" / "systemd" / "rlm.service"
_ANALYZE = "systemd-analyze"

NEEDS = Needs(programs=(_ANALYZE,))


def test_unit_when_systemd_reads_it_then_has_no_complaint(tmp_path: Path) -> None:
    assert _complaints(tmp_path, _UNIT.read_text()) == ""


def test_unit_when_a_directive_is_misspelled_then_systemd_complains(tmp_path: Path) -> None:
    """Otherwise the absence of complaints would prove nothing."""
    text = _UNIT.read_text().replace("ProtectSystem=", "ProtectSystems=")

    assert "ProtectSystems" in _complaints(tmp_path, text)


def test_unit_when_systemd_rates_its_exposure_then_is_low() -> None:
    """On systemd's scale from 0 to 10; the rest is due to the network, other users and groups."""
    done = subprocess.run(
        [program(_ANALYZE), "security", "--offline=true", "--threshold=20", "--no-pager", _UNIT],
        capture_output=True,
        text=True,
        check=False,
        timeout=60.0,
    )

    assert "Overall exposure level" in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr


def _complaints(directory: Path, text: str) -> str:
    """Return systemd's complaints about the unit, with a program that this machine has."""
    unit = directory / _UNIT.name
    unit.write_text(text.replace("/opt/rlm/bin/rlm", sys.executable))
    done = subprocess.run(
        [program(_ANALYZE), "verify", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60.0,
    )
    return done.stdout + done.stderr
