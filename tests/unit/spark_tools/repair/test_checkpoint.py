"""Whose checkpoint it is, by the id that is kept in it; a stand-in is the file."""

from __future__ import annotations

from uuid import UUID

import pytest

from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import id_to_text
from spark_tools.repair.checkpoint import TextFile, require_noted_id

_OURS, _ANOTHER = UUID(int=1), UUID(int=2)


class MemoryFile(TextFile):
    def __init__(self, text: str = "") -> None:
        self.text = text

    def read(self) -> str:
        return self.text

    def write(self, text: str) -> None:
        self.text = text


def require_ours(noted: TextFile) -> None:
    require_noted_id(noted, _OURS, checkpoint="s3a://jobs/repair", topic="letters")


def test_checkpoint_when_it_has_no_id_then_the_one_that_is_found_is_noted() -> None:
    """Whether it is new, or of a version that noted none."""
    noted = MemoryFile()

    require_ours(noted)

    assert noted.text == id_to_text(_OURS)


def test_checkpoint_when_it_has_the_topics_id_then_it_is_left_as_it_is() -> None:
    noted = MemoryFile(f"{id_to_text(_OURS)}\n")

    require_ours(noted)

    assert noted.text == f"{id_to_text(_OURS)}\n"


def test_checkpoint_when_the_topic_was_made_anew_then_refused_with_both_ids() -> None:
    noted = MemoryFile(id_to_text(_ANOTHER))

    with pytest.raises(InvalidConfigError, match="another topic of the same name") as raised:
        require_ours(noted)

    context = raised.value.context
    assert (context["expected"], context["found"]) == (id_to_text(_OURS), id_to_text(_ANOTHER))
    assert (context["topic"], context["checkpoint"]) == ("letters", "s3a://jobs/repair")
    assert noted.text == id_to_text(_ANOTHER)
