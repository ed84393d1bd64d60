"""The profiles of one broker: `quickstart`, and `streaming` with an rlm that streams."""

from __future__ import annotations

import json

import pytest

from tests.containers.stack import ComposeStack
from tests.services.service import ServiceError
from tests.services.waiting import wait_until

_TOPIC = "streamed"
_RECORDS = 1_000
_STORED_S = 180.0


@pytest.mark.long
def test_quickstart_when_checked_then_stores_trims_and_reads_back(stack: ComposeStack) -> None:
    with stack.one_broker("quickstart"):
        checked = ("rlm", "check", "--end-to-end", "--wait", "150", "--json")
        printed = stack.script("compose", "exec", "-T", "quickstart", *checked)

        assert json.loads(printed)["ok"]


@pytest.mark.long
def test_broker_when_it_is_lost_before_its_segment_rolled_then_the_store_has_the_records(
    stack: ComposeStack,
) -> None:
    with stack.one_broker("streaming"):
        stack.client(
            f"kafka-topics.sh --bootstrap-server streaming-broker:9092 --create --topic {_TOPIC}"
        )
        stack.script("compose", "exec", "-T", "streaming", "rlm", "topic", "enable", _TOPIC)
        to_topic = f"--bootstrap-server streaming:19096 --topic {_TOPIC}"
        stack.client(f"seq {_RECORDS} | kafka-console-producer.sh {to_topic}")
        wait_until(
            lambda: len(_stored(stack)) == _RECORDS,
            deadline_s=_STORED_S,
            describe=lambda: f"{len(_stored(stack))} of {_RECORDS} are stored",
            interval_s=1.0,
            despite=ServiceError,
        )
        stack.kill("streaming-broker")

        assert _stored(stack) == list(range(1, _RECORDS + 1))


def _stored(stack: ComposeStack) -> list[int]:
    read = ("rlm", "read", f"{_TOPIC}:0", "--from-store", "--json")
    lines = stack.script("compose", "exec", "-T", "streaming", *read).splitlines()
    return [int(json.loads(line)["value"]) for line in lines]
