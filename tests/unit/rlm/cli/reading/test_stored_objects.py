from __future__ import annotations

from rlm.cli.reading.explain import _lines
from rlm.cli.reading.stored_objects import AS_RECORDED, MISSING, states_of
from rlm.policy.anomalies import anomaly_as_json
from rlm.tasks.copying.copier import BoundedAttempt
from tests.metadata_builder import anomaly
from tests.remote_world import RemoteWorld, segment_of


def test_objects_when_one_is_gone_then_both_are_named_with_their_state() -> None:
    world = RemoteWorld()
    world.claim()
    metadata = world.store(segment_of(0))
    log, companion = (stored.key for stored in metadata.objects)
    world.objects.delete(log)
    deadline_ms = world.clock.monotonic_ms() + 1_000

    found = states_of(
        world.storage, [metadata], BoundedAttempt(world.clock, deadline_ms, lambda: False)
    )

    assert found == {log: MISSING, companion: AS_RECORDED}


def test_lines_when_an_object_is_missing_then_say_so_and_since_when() -> None:
    segment = {
        "id": "A",
        "base_offset": 0,
        "end_offset": 100,
        "state": "COPY_SEGMENT_FINISHED",
        "state_since_ms": 0,
        "size_bytes": 9,
        "readable_from": 0,
        "objects": ["0.log"],
    }
    document = {
        "topic": "orders",
        "partition": 0,
        "offset": 5,
        "leader_epoch": 1,
        "location": "remote",
        "log_start_offset": 0,
        "local_start_offset": 100,
        "high_watermark": 200,
        "segments": [segment],
        "local_copy": None,
        "gap": None,
        "anomalies": [anomaly_as_json(anomaly(key="0.log"))],
        "objects_in_store": {"0.log": MISSING},
    }

    lines = _lines(document)

    assert "    0.log, in the store: missing" in lines
    assert any(line.startswith("  anomaly missing: 0.log since 1970") for line in lines)
