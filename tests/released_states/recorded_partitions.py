"""The topics and partitions of the recorded cluster."""

from __future__ import annotations

from uuid import UUID

from rsm.segment.ids import TopicIdPartition

ORDERS_ID = UUID("6f1c2a5e-9d3b-4c07-8a61-0b5e7d1f2c34")
CLICKS_ID = UUID("a3d90b17-52fe-4e6c-b1c8-7f4ad2e96056")
INVOICES_ID = UUID("1e8b4f60-c7a2-49d5-9e33-d5a0861b7cf2")
ORDERS, ORDERS_1 = (
    TopicIdPartition(topic_id=ORDERS_ID, topic="orders", partition=number) for number in range(2)
)
CLICKS, CLICKS_1 = (
    TopicIdPartition(topic_id=CLICKS_ID, topic="clicks", partition=number) for number in range(2)
)
INVOICES = tuple(
    TopicIdPartition(topic_id=INVOICES_ID, topic="invoices.2025_q4", partition=number)
    for number in range(3)
)
PAYMENTS = TopicIdPartition(
    topic_id=UUID("5c8e0d27-b19a-4f36-8d42-e7610fa93b58"), topic="payments", partition=0
)
LED = (ORDERS, ORDERS_1, CLICKS, PAYMENTS)
PARTITIONS = (*LED, CLICKS_1, *INVOICES)
