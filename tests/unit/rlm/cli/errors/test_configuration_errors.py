"""What commands print for a wrong configuration, with their exit codes. No command connects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rlm.cli.errors.ended_command import ended, on_terminal, without_advice
from tests.unit.rlm.cli.golden_text import assert_golden

STORE = "rsm.config.storage.backend=filesystem\n"
FILES = {
    "misspelled.properties": "bootstrap.servers=a:1\nlog.dir=/var/lib/kafka\n",
    "unlike.properties": "bootstrap.servers=a:1\nzookeeper.connect=a:2181\n",
    "out-of-range.properties": "bootstrap.servers=a:1\nremote.log.manager.task.interval.ms=0\n",
    "no-number.properties": "bootstrap.servers=a:1\nremote.log.manager.task.interval.ms=soon\n",
    "no-cluster.properties": STORE,
    "no-store.properties": "bootstrap.servers=a:1\n",
    "reserved.properties": "bootstrap.servers=a:1\nclient.group.id=mine\n",
    "secret.properties": "bootstrap.servers=a:1\nclient.sasl.mechanism=PLAIN\n"
    "client.sasl.pasword=hunter2\n",
    "escape.properties": "bootstrap.servers=\\u12\n",
    "latin1.properties": "",
}
COMMANDS = (
    "status",
    "storage check",
    "status --config missing.properties",
    "status --config .",
    *(f"status --config {name}" for name in FILES if name != "no-store.properties"),
    "storage check --config no-store.properties",
    "config check --config misspelled.properties",
    "status --bootstrap-server localhost",
    "status --bootstrap-server a:1 --command-config missing.properties",
    "status --bootstrap-server a:1 --command-config client.properties",
    "apply --file policies.yaml --config no-store.properties",
    "apply --file missing.yaml --config no-store.properties",
    "debug bundle --out misspelled.properties --config no-store.properties",
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin1.properties").write_bytes(b"bootstrap.servers=caf\xe9:1\n")
    (tmp_path / "client.properties").write_text("security.protocl=SSL\n")
    (tmp_path / "policies.yaml").write_text("patterns:\n  orders-*:\n    retntion_ms: 7d\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("RLM_CONFIG", raising=False)


def test_configuration_when_wrong_then_one_line_says_what_why_and_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line for command in COMMANDS for line in (*ended(command, capsys), "")]
    monkeypatch.setenv("RLM_CONFIG", "missing.properties")
    lines += ["RLM_CONFIG=missing.properties", *ended("status", capsys)]

    assert "hunter2" not in "\n".join(lines)
    assert without_advice(lines) == []
    assert_golden("errors_configuration.txt", on_terminal(lines))
