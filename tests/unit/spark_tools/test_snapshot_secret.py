"""Spark jobs read the topic with the cluster's secrets, and never show a secret."""

from __future__ import annotations

import base64
import pickle
from functools import partial

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.codec import encode
from rlmm.events.secret import SigningSecret, cluster_secret
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.ranges import OffsetRange
from spark_tools.snapshot import LeaseTerms, MetadataSnapshot
from tests import metadata_builder as build
from tests.log_dir_builder import ManualClock

_SECRETS = (build.secret(201), build.secret(202))


def _log_with_secrets() -> MemoryLog:
    """Return a log with a stored segment, a secret, the next one, and damaged records of these."""
    log = MemoryLog(ManualClock())
    stored = build.segment_metadata(1, 0, 10)
    for event in (
        build.claim(build.writer()),
        build.cluster_secret(201),
        build.step(stored, stored.state),
        build.step(stored, build.FINISHED),
        build.cluster_secret(202, previous=201),
    ):
        record = encode(event)
        log.append(0, record.key, record.value)
    secret = encode(build.cluster_secret(202, previous=201))
    log.append(0, secret.key, secret.value[:-1])
    log.append(0, secret.key, secret.value.replace(_SECRETS[1].key, _SECRETS[1].key[:-1]))
    log.append(0, secret.key + b"x", secret.value)
    return log


def _forms(secret: SigningSecret) -> tuple[str, ...]:
    """Return eight bytes of a key in all forms in which they could be printed."""
    part = secret.key[:9]
    return (part.hex(), repr(part)[2:-1], base64.b64encode(part).decode(), str(list(part))[1:-1])


def test_snapshot_when_the_topic_holds_secrets_then_no_answer_and_no_log_line_has_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    topic = MemoryTopic(_log_with_secrets())
    cache = MetadataCache(MemoryStore())
    settings = ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0))
    manager = TopicBasedRemoteLogMetadataManager(topic, cache, ManualClock(), settings)
    snapshot = MetadataSnapshot(manager, cache, partial(topic.ensure, create=False))
    assert manager.wait_ready(1000).is_ready
    snapshot.catch_up_all()
    whole = OffsetRange(start_offset=0, end_offset=10)
    terms = LeaseTerms(holder="job", duration_ms=1000)

    answers = (
        snapshot.take_lease(build.ORDERS, whole, terms),
        snapshot.identity,
        snapshot.positions(),
        snapshot.unread_records(),
        tuple(snapshot.every_segment()),
        snapshot.partition_state(build.ORDERS),
        snapshot.active_leases(build.ORDERS),
        snapshot.knowledge(build.ORDERS),
        snapshot.newer_record(build.ORDERS),
        snapshot.partition(build.ORDERS),
    )

    shown = "\n".join((repr(answers), repr(snapshot), repr(manager), repr(cache), caplog.text))
    assert cluster_secret(manager) is not None
    assert len(snapshot.partition(build.ORDERS).segments) == 1
    assert snapshot.unread_records()
    for secret in _SECRETS:
        assert secret.key[:9] not in pickle.dumps(answers)  # what Spark's workers get
        assert [form for form in _forms(secret) if form in shown] == []
