"""Scenario 122: rlm is replaced by another version, one host after another, and rolled back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers import previous_version
from tests.containers.numbered_topic import NumberedTopic
from tests.containers.stack import HOSTS, ComposeStack

# On two cores it takes two minutes, or less than four if it also starts the stack.
pytestmark = pytest.mark.timeout(480)
_CURRENT = "latest"


@pytest.fixture
def previous_tag(stack: ComposeStack) -> Iterator[str]:
    """The tag of the previous commit's image; afterwards all hosts get the current image again."""
    commit = previous_version.build_image()
    stack.report.append(f"Hosts were upgraded from the image of {commit}, and rolled back to it.")
    if previous_version.is_current(commit):
        stack.report.append("This clone has no earlier commit: both images have the same code.")
    yield previous_version.TAG
    stack.replace(*(f"rlm-{number}" for number in HOSTS), tag=_CURRENT)
    stack.wait_ready()


def test_rlm_when_replaced_by_the_previous_version_and_back_then_clients_lose_and_repeat_nothing(
    stack: ComposeStack, trimmed_topic: NumberedTopic, previous_tag: str
) -> None:
    current = stack.image_id("rlm-1")
    with trimmed_topic.read_steadily() as reader:
        with trimmed_topic.produced_steadily():
            for tag in (previous_tag, _CURRENT):
                for number in HOSTS:
                    reader.wait_for_more()
                    stack.replace(f"rlm-{number}", tag=tag)
                    assert (stack.image_id(f"rlm-{number}") == current) == (tag == _CURRENT)
                    stack.wait_ready()
        reader.wait_for(trimmed_topic.expected())

    assert reader.sorted_numbers() == trimmed_topic.expected()
    trimmed_topic.wait_stored()
    assert trimmed_topic.read() == trimmed_topic.expected()
