"""Names as long as users and Kafka make them."""

from __future__ import annotations

from uuid import UUID

from rsm.segment.ids import TopicIdPartition

LONG_NAME = "emea.payments.settlement-reconciliation.ledger-entries.by-account.v2"
LONGEST_NAME = f"{LONG_NAME}." * 3 + "x" * (249 - 3 * (len(LONG_NAME) + 1))
"""As long as Kafka permits."""


def tip(topic: str = LONG_NAME, partition: int = 117) -> TopicIdPartition:
    return TopicIdPartition(
        topic_id=UUID(int=0x9A11_F00D << 96 | 0xBEEF), topic=topic, partition=partition
    )
