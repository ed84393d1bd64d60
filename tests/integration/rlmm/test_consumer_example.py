"""The program that docs/metadata.md shows, as a user copies it, against a real broker."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rlmm.codec import encode
from tests.contract.event_topic_contract import OpenTopic
from tests.metadata_builder import FINISHED, segment_metadata, step
from tests.services.kafka import KafkaCluster
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_DOCS = Path(__file__).resolve().parents[3] / "docs" / "metadata.md"


def _program(bootstrap_servers: str, topic_name: str) -> str:
    found = re.search(r"```python\n(.*?)```", _DOCS.read_text(), re.DOTALL)
    assert found is not None
    program = found[1].replace("broker:9092", bootstrap_servers)
    return program.replace("__remote_log_segment_metadata", topic_name)


def test_example_when_run_then_prints_what_is_written_from_now_on(
    kafka: KafkaCluster, open_topic: OpenTopic, topic_name: str, tmp_path: Path
) -> None:
    topic = open_topic()
    command = [sys.executable, "-u", "-c", _program(kafka.bootstrap_servers, topic_name)]
    example = ServiceProcess(command, log_path=tmp_path / "example.log")

    def prints() -> bool:
        record = encode(step(segment_metadata(1, 0, 100), FINISHED))
        topic.publish(0, record.key, record.value)
        return "COPY_SEGMENT_FINISHED" in example.log_path.read_text()

    wait_until(prints, 30.0, example.log_tail, interval_s=0.5)
    example.interrupt()

    first_line = example.log_path.read_text().splitlines()[0]
    place, state, offsets = first_line.partition("SegmentState.COPY_SEGMENT_FINISHED")
    assert re.fullmatch(r"MetadataPosition\(partition=0, offset=\d+\)", place.strip())
    assert (state, offsets) == ("SegmentState.COPY_SEGMENT_FINISHED", " [0, 100)")
