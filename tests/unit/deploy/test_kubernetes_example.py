"""The part of a pod template in docs/deployment.md: its paths, ports and rights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from rlm.config.load import load_config

_CHECKOUT = Path(__file__).resolve().parents[3]
_CONFIGURATION = _CHECKOUT / "deploy" / "configurations" / "s3-sasl-ssl.properties"


def _pod() -> dict[str, Any]:
    page = (_CHECKOUT / "docs" / "deployment.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    pod: dict[str, Any] = yaml.safe_load(text)["spec"]
    return pod


def test_container_when_described_then_has_few_rights_and_reads_the_brokers_log_only() -> None:
    (container,) = _pod()["containers"]
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
    host = load_config(_CONFIGURATION).host

    rights = container["securityContext"]
    assert rights["runAsNonRoot"] is rights["readOnlyRootFilesystem"] is True
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert [mounts[str(each)]["readOnly"] for each in host.log_dirs] == [True]
    assert "readOnly" not in mounts[str(host.state_dir)]


def test_container_when_described_then_its_volumes_and_ports_exist() -> None:
    pod = _pod()
    (container,) = pod["containers"]

    own = {each["name"] for each in pod["volumes"]}
    assert {each["name"] for each in container["volumeMounts"]} - own == {"data"}
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert container["livenessProbe"]["httpGet"]["port"] in ports
    assert f":{ports['gateway']}" in container["args"][0]
