"""A tiered topic of numbered records, which shows whether clients read each record once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.containers.stack import GATEWAYS, ComposeStack
from tests.containers.steady_clients import SteadyProducer, SteadyReader
from tests.services.service import ServiceError
from tests.services.waiting import wait_until

PARTITIONS = 3
_RECORDS = 12_000
_DIGITS = 8
_PADDING = 1_000
# The stack's rlm trim records that are half a minute old.
_TRIMMED_S = 300.0
_STORED_S = 180.0
_WITHOUT_END = "--message-send-max-retries 1000000 --request-timeout-ms 10000"


class NumberedTopic:
    """Produces, and reads what it produced; each record's value begins with its number."""

    def __init__(self, stack: ComposeStack, name: str) -> None:
        self._stack = stack
        self.name = name
        self._produced = 0

    def create_tiered(self) -> None:
        """Create it with small segments, which brokers trim as soon as possible."""
        sizes = ("--partitions", str(PARTITIONS), "--replication-factor", "3")
        segments = ("--config", f"segment.bytes={1024 * 1024}")
        self._stack.broker_tool("kafka-topics", "--create", "--topic", self.name, *sizes, *segments)
        self._stack.rlm("topic", "enable", self.name, "--local-retention-bytes", "1")

    def produce(self) -> None:
        """Produce 12 MB through the gateways, from a separate container."""
        first, last = self._produced, self._produced + _RECORDS - 1
        lines = (
            f"awk 'BEGIN {{ for (i = {first}; i <= {last}; i++)"
            f' printf "%0{_DIGITS}d%0{_PADDING}d\\n", i, 0 }}\''
        )
        to_topic = f"--bootstrap-server {GATEWAYS} --topic {self.name} {_WITHOUT_END}"
        self._stack.client(f"{lines} | kafka-console-producer.sh {to_topic}")
        self._produced += _RECORDS

    @contextmanager
    def produced_steadily(self) -> Iterator[None]:
        """Produce through the gateways, without a pause, until the block ends."""
        to_topic = f"--bootstrap-server {GATEWAYS} --topic {self.name} {_WITHOUT_END}"
        process = self._stack.client_process(
            f"kafka-console-producer.sh {to_topic} --producer-property delivery.timeout.ms=300000"
        )
        line = f"{{:0{_DIGITS}d}}{'0' * _PADDING}\n"
        with SteadyProducer(process, first=self._produced, line=line) as producer:
            yield
        self._produced = producer.next

    @contextmanager
    def read_steadily(self) -> Iterator[SteadyReader]:
        """Read all records as they arrive, through the gateways, until the block ends."""
        of_topic = f"--bootstrap-server {GATEWAYS} --topic {self.name} --from-beginning"
        # A member that joins its group again would continue where it last committed.
        member = "--consumer-property session.timeout.ms=900000"
        until_input_ends = "& consumer=$!; cat >/dev/null; kill $consumer; wait || true"
        process = self._stack.client_process(
            f"kafka-console-consumer.sh {of_topic} {member} {until_input_ends}"
        )
        with SteadyReader(process, digits=_DIGITS) as reader:
            yield reader

    def read(self) -> list[int]:
        """Read all records through the gateways in a new container; return the sorted numbers."""
        of_topic = f"--bootstrap-server {GATEWAYS} --topic {self.name} --from-beginning"
        until = f"--max-messages {self._produced} --timeout-ms 60000"
        values = f"kafka-console-consumer.sh {of_topic} {until} | cut -c1-{_DIGITS}"
        return sorted(int(line) for line in self._stack.client(values).splitlines())

    def expected(self) -> list[int]:
        """Return the sorted numbers of all records that were produced."""
        return list(range(self._produced))

    def wait_trimmed(self) -> None:
        """Wait until the brokers no longer have the first record of any partition."""
        wait_until(
            lambda: all(each["start"] for each in self._stack.partitions(self.name)),
            deadline_s=_TRIMMED_S,
            describe=lambda: f"all partitions are trimmed: {self._stack.rlm('status', self.name)}",
            interval_s=1.0,
        )

    def wait_stored(self) -> None:
        """Wait until all rolled segments are stored, and nothing needs attention."""
        wait_until(
            self._is_stored,
            deadline_s=_STORED_S,
            describe=lambda: f"all is stored: {self._stack.rlm('status', self.name)}",
            interval_s=1.0,
            despite=ServiceError,
        )

    def wait_copied(self) -> None:
        """Wait until all rolled segments are stored, whatever else needs attention."""
        wait_until(
            lambda: _is_copied(self._stack.status(self.name)),
            deadline_s=_STORED_S,
            describe=lambda: f"all is stored: {self._stack.rlm('status', self.name)}",
            interval_s=1.0,
            despite=ServiceError,
        )

    def wait_lagging(self) -> None:
        """Wait until a rolled segment is not stored."""
        wait_until(
            lambda: self._stack.status(self.name)["totals"]["lag_segments"] > 0,
            deadline_s=_STORED_S,
            describe=lambda: f"a segment is not stored: {self._stack.rlm('status', self.name)}",
            interval_s=1.0,
            despite=ServiceError,
        )

    def wait_replicated(self) -> None:
        """Wait until all replicas of all partitions are in sync."""
        wait_until(
            lambda: all(
                each["in_sync"] == each["replicas"] for each in self._stack.partitions(self.name)
            ),
            deadline_s=_STORED_S,
            describe=lambda: f"all are in sync: {self._stack.partitions(self.name)}",
            interval_s=0.5,
            despite=ServiceError,
        )

    def _is_stored(self) -> bool:
        document = self._stack.status(self.name)
        return document["problems"] == [] and _is_copied(document)


def _is_copied(status: dict[str, Any]) -> bool:
    return all(each["lag_segments"] == 0 for each in status["partitions"])
