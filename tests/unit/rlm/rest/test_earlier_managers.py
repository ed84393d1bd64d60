"""Answers of managers up to 0.2.0, whose fields had other names."""

from __future__ import annotations

from contextlib import closing

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rlm.policy.blocked import Blocked
from rsm.segment.ids import id_to_text
from tests.unit.rlm.cli.stated_managers import TOPIC_ID, Cluster, report
from tests.unit.rlm.rest.signed_manager import serving

_REASON = {"reason": "not_stored", "stored_end_offset": 7}
_BLOCKED = Blocked(reason="not_stored", values={"stored_end_offset": 7})

# Every manager since 0.1.0 sends these fields.
_FIRST_ROW = {
    "topic": "orders",
    "topic_id": id_to_text(TOPIC_ID),
    "partition": 0,
    "role": "leader",
    "leader_epoch": 3,
    "claimed": True,
    "lag_segments": 2,
    "lag_bytes": 2048,
    "remote_segments": 4,
    "remote_bytes": 400,
    "copying": False,
    "diverged": True,
    "external_start": False,
}
_FIRST_EXPLANATION = {
    "offset": 5,
    "place": "both",
    "leader_epoch": 1,
    "log_start_offset": None,
    "local_start_offset": 3,
    "high_watermark": 9,
    "segments": [],
    "local_copy": {
        "state": "held",
        "reason": "young",
        "base_offset": 3,
        "end_offset": 6,
        "values": {"age_ms": 4},
    },
}
_FIRST_PREVIEW = {
    "topic": "orders",
    "partition": 0,
    "log_start_offset": 0,
    "new_log_start_offset": 0,
    "rule": "",
    "expiring_segments": 0,
    "expiring_bytes": 0,
    "deletions": [],
    "local_start_offset": 3,
    "new_local_start_offset": 3,
    "trim_rule": "",
    "trim_held": _REASON,
    "expiry_held": _REASON,
}


def test_partitions_when_an_earlier_manager_answers_then_have_present_names() -> None:
    row = {**_FIRST_ROW, "copy_held": _REASON, "trim_held": _REASON, "expiry_held": None}

    with serving(_answering([row])) as address, closing(Cluster().client()) as client:
        (found,) = client.partitions(Cluster().manager(1, address))

    assert (found.copy_blocked, found.trim_blocked, found.expiry_blocked) == (
        _BLOCKED,
        _BLOCKED,
        None,
    )


def test_partitions_when_the_first_version_answers_then_what_it_lacks_is_not_known() -> None:
    with serving(_answering([_FIRST_ROW])) as address, closing(Cluster().client()) as client:
        (found,) = client.partitions(Cluster().manager(1, address))

    assert found == report(
        policy_state="",
        remote_segments=4,
        remote_bytes=400,
        is_diverged=True,
        offload_offset=None,
        offload_end_offset=None,
    )


def test_explanation_when_an_earlier_manager_answers_then_has_present_names() -> None:
    with serving(_answering(_FIRST_EXPLANATION)) as address, closing(Cluster().client()) as client:
        found = client.explanation(Cluster().manager(1, address), "a", 1, 5)

    assert (found.offset, found.location, found.gap) == (5, "both", None)
    assert found.local_copy is not None
    assert (found.local_copy.state, found.local_copy.values) == ("held", {"age_ms": 4})


def test_retention_when_an_earlier_manager_answers_then_has_present_names() -> None:
    with serving(_answering([_FIRST_PREVIEW])) as address, closing(Cluster().client()) as client:
        (found,) = client.retention(Cluster().manager(1, address), "orders")

    assert (found.trim_blocked, found.expiry_blocked) == (_BLOCKED, _BLOCKED)


def _answering(answer: object) -> Starlette:
    def respond(_: Request) -> Response:
        return JSONResponse(answer)

    names = ("partitions", "explanation", "retention")
    return Starlette(routes=[Route(f"/v1/{name}", respond) for name in names])
