"""Fixtures that a few modules of this level share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.kafka import KafkaCluster
from tests.services.provider import ServiceProvider
from tests.services.three_brokers import three_brokers


@pytest.fixture(scope="module")
def kafka_of_three(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    """Three brokers; they end with the module, because even idle brokers need the processor."""
    with three_brokers(services, tmp_path_factory.mktemp("kafka-of-three")) as cluster:
        yield cluster
