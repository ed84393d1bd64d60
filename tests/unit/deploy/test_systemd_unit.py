"""The systemd unit agrees with the product and the example configurations."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[3]
_UNIT = _CHECKOUT / "deploy" / "systemd" / "rlm.service"


def _service() -> dict[str, str]:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # the way to keep capitals
    parser.read(_UNIT)
    return dict(parser["Service"])


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
