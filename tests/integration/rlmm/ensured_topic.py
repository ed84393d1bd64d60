"""Creates a metadata topic and waits until all brokers know the topic."""

from __future__ import annotations

from rlmm.positions import TopicIdentity
from rlmm.topic.event_topic import EventTopic
from rsm.segment.errors import RetriableError
from tests.services.waiting import wait_until


def ensured(topic: EventTopic) -> TopicIdentity:
    """Ensure the topic; retry, because brokers learn of a new topic one after the other."""
    what = "the metadata topic"
    return wait_until(lambda: topic.ensure(create=True), 30.0, what, despite=RetriableError)
