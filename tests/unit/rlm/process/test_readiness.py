from __future__ import annotations

import json

from rlm.process.readiness import ReadinessReport


def test_readiness_when_sent_as_json_then_read_back() -> None:
    sent = ReadinessReport(is_ready=False, reasons=("no cluster",), warnings=("damaged",))

    assert ReadinessReport.from_json(json.loads(json.dumps(sent.to_json()))) == sent
