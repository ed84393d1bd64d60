"""What commands print for wrong arguments, with their exit codes. No command connects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rlm.cli.errors.ended_command import ended, on_terminal, without_advice
from tests.unit.rlm.cli.golden_text import assert_golden

SEGMENT = "AAAAAAAAAAAAAAAAAAAABw"
ARGUMENTS = (
    "stats",
    "plugin",
    "zzz",
    "--verison",
    "topic enabel orders",
    "topic --hlep",
    "status --chek",
    "status --interval soon",
    "status --interval 3",
    "status --watch --json",
    "status --wide --json",
    "status orders:first",
    "status 'a b'",
    "explain orders",
    "explain orders 5",
    "explain orders:0 five",
    "explain orders:0 -- -5",
    "read orders:0 --from noon",
    "read orders:0 --from 10 --to 5",
    "read orders --from 10",
    "read orders:0 --from-store --bootstrap-server 127.0.0.1:1",
    "read orders:0 --topic-id AAAAAAAAAAAAAAAAAAAABw",
    "segments list orders --state finishd",
    "segments list orders --from 5 --to 5",
    "segments delete orders",
    "segments delete orders --streamed",
    "topic set orders --retention 7x",
    "topic set orders --outage-policy shd",
    "topic set orders --inherit retntion-ms",
    "topic set orders --retention 1h --inherit retention-ms",
    "topic set orders --retention 1h --local-retention 2h",
    "topic set orders --local-retention 1h --copy-lag 2h",
    "topic alter orders",
    "topic disable orders --delete-remote",
    "topic resolve orders",
    f"topic resolve orders --lost-segment {SEGMENT}",
    "topic resolve orders:0 --lost-segment zzz",
    f"topic resolve orders:0 --lost-segment {SEGMENT} --move-log-start",
    "policy set",
    "policy set 'orders-*' --default",
    "policy set 'orders/*'",
    "offload orders --no-wait --wait 3h",
    "pause orders:0",
    "retention run orders",
    "leases release orders --holder job-7",
    "leases release orders --holder ''",
    "segments list orders --wide --json",
    "explain orders:0 99999999999999999999",
    "explain orders:0 -1",
    "read orders:9999999999",
    "metadata dump --topic 'a b'",
    "metadata tail --topic orders:0",
    "check --end-to-end --gateway-config missing.properties",
    "check --keep",
    "dlq retry",
    "processes --forget zzz",
    "blocks write --uuid 00000000-0000-0000-0000-000000000001 --out out",
    "blocks inspect missing missing-index",
    "status --command-config client.properties",
    "status --config rlm.properties --bootstrap-server 127.0.0.1:1",
)


def test_arguments_when_wrong_then_one_line_says_what_why_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("RLM_CONFIG", raising=False)

    lines = [line for command in ARGUMENTS for line in (*ended(command, capsys), "")]

    assert without_advice(lines) == []
    assert_golden("errors_arguments.txt", on_terminal(lines))
