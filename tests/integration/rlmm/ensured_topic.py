"""A metadata topic that is there, whatever it takes."""

from __future__ import annotations

from rlmm.positions import TopicIdentity
from rlmm.topic.event_topic import EventTopic
from rsm.segment.errors import RetriableError
from tests.services.waiting import wait_until


def ensured(topic: EventTopic) -> TopicIdentity:
    """Ensure the topic; a topic just created is not known to all brokers at once."""

    def identity() -> TopicIdentity | None:
        try:
            return topic.ensure(create=True)
        except RetriableError:
            return None

    found = wait_until(identity, 30.0, "the metadata topic")
    assert found is not None
    return found
