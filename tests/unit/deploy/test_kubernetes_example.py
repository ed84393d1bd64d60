"""The part of a pod template in docs/deployment.md: its paths, ports and rights."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlm.config.load import load_config

_CHECKOUT = Path(__file__).resolve().parents[3]
_CONFIGURATION = _CHECKOUT / "deploy" / "configurations" / "s3-sasl-ssl.properties"


def _examples() -> tuple[str, str]:
    """Return the example of a Service and a StatefulSet, and the part of the pod template."""
    page = (_CHECKOUT / "docs" / "deployment.md").read_text()
    around, pod = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    return around, pod


def _pod() -> dict[str, Any]:
    pod: dict[str, Any] = yaml.safe_load(_examples()[1])["spec"]
    return pod


def test_names_of_brokers_when_rlm_starts_or_fails_then_stay() -> None:
    service, brokers = yaml.safe_load_all(_examples()[0])

    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert brokers["spec"]["serviceName"] == service["metadata"]["name"]
    assert brokers["spec"]["podManagementPolicy"] == "Parallel"
    assert "readinessProbe" not in _pod()["containers"][0]


def test_container_when_described_then_has_few_rights_and_reads_the_brokers_log_only() -> None:
    (container,) = _pod()["containers"]
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
    host = load_config(_CONFIGURATION).host

    rights = container["securityContext"]
    assert rights["runAsNonRoot"] is rights["readOnlyRootFilesystem"] is True
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
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


def test_disk_cache_when_described_then_fits_a_volume_with_a_limit() -> None:
    """A pod that exceeds such a limit is evicted."""
    pod = _pod()
    (container,) = pod["containers"]
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    (cache_path, size_gib) = re.findall(
        r"(?m)^rsm\.config\.fetch\.chunk\.cache\.(?:path=(.+)/chunks|disk\.size=(\d+)GiB)$",
        _CONFIGURATION.read_text(),
    )

    volumes = {each["name"]: each for each in pod["volumes"]}
    limit = volumes[mounts[cache_path[0]]]["emptyDir"]["sizeLimit"]
    assert int(limit.removesuffix("Gi")) > int(size_gib[1])


@pytest.mark.parametrize("last_character", ["", "\n"])
def test_container_when_the_secret_ends_with_or_without_a_newline_then_adds_its_address(
    tmp_path: Path, last_character: str
) -> None:
    (container,) = _pod()["containers"]
    settings, written = tmp_path / "etc.properties", tmp_path / "tmp.properties"
    settings.write_text("state.dir=/var/lib/rlm" + last_character)
    script = container["args"][0].replace("/etc/rlm/rlm.properties", str(settings))
    script = script.replace("/tmp/rlm.properties", str(written)).replace("exec rlm", "echo rlm")

    done = subprocess.run(
        [*container["command"], script],
        env={"PATH": os.environ["PATH"], "POD_NAME": "kafka-2", "NAMESPACE": "events"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"rlm run --config {written}\n"
    assert [each for each in written.read_text().splitlines() if each] == [
        "state.dir=/var/lib/rlm",
        "gateway.advertised.listener=kafka-2.kafka.events.svc.cluster.local:19092",
    ]


def test_volumes_when_the_pod_starts_again_then_their_group_is_not_set_again() -> None:
    """Otherwise each start changes the group of all files of the broker's log."""
    assert _pod()["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"
