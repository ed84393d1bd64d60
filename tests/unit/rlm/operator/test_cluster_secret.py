from __future__ import annotations

from itertools import count
from uuid import UUID

from rlm.operator.cluster_secret import SecretWriter
from rlmm.events.secret import PREVIOUS_VALID_MS, ClusterSecret, cluster_secret
from tests.unit.rlm.cli.stated_managers import Cluster


class _Keys:
    """Keys that differ: 32 times 1, then 2, and so on."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self, length: int) -> bytes:
        return bytes([next(self._numbers)]) * length


def _writer(cluster: Cluster) -> SecretWriter:
    ids = count(1)
    return SecretWriter(cluster.metadata, lambda: UUID(int=next(ids)), _Keys())


def _secret(cluster: Cluster) -> ClusterSecret:
    secret = cluster_secret(cluster.metadata)
    assert secret is not None
    return secret


def test_secret_when_there_is_none_then_made_once() -> None:
    cluster = Cluster()
    writer = _writer(cluster)

    writer.ensure()
    first = _secret(cluster)
    writer.ensure()

    assert _secret(cluster) == first
    assert first.previous is None


def test_secret_when_rotated_then_the_one_before_is_kept_and_no_older_one() -> None:
    cluster = Cluster()
    writer = _writer(cluster)
    writer.ensure()
    first = _secret(cluster).current

    second_id = writer.rotate().current.secret_id
    second = _secret(cluster)
    writer.rotate()
    third = _secret(cluster)

    assert second.current.secret_id == second_id
    assert second.previous == first
    assert third.previous == second.current
    assert third.valid(first.secret_id, third.set_ms) is None
    assert third.valid(second_id, third.set_ms + PREVIOUS_VALID_MS - 1) == second.current
    assert third.valid(second_id, third.set_ms + PREVIOUS_VALID_MS) is None


def test_secret_when_printed_then_not_shown() -> None:
    cluster = Cluster()
    _writer(cluster).ensure()

    shown = repr(_secret(cluster))

    assert "x01" not in shown
    assert "key" not in shown
