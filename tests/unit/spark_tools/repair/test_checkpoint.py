"""A checkpoint belongs to the topic whose id is stored in it."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import id_to_text
from spark_tools.repair.checkpoint import require_noted_id
from tests.unit.spark_tools.local_files import LocalFiles

_OURS, _ANOTHER = UUID(int=1), UUID(int=2)


def require_ours(checkpoint: Path) -> None:
    files = LocalFiles(checkpoint)
    require_noted_id(files, _OURS, checkpoint="s3a://jobs/repair", topic="letters")


def noted(checkpoint: Path) -> Path:
    return checkpoint / "letter-topic-id"


def test_checkpoint_when_it_has_no_id_then_the_one_that_is_found_is_noted(tmp_path: Path) -> None:
    """The checkpoint is new, or of a version that noted no id."""
    require_ours(tmp_path)

    assert noted(tmp_path).read_text() == id_to_text(_OURS)


@pytest.mark.parametrize("text", [f"{id_to_text(_OURS)}\n", id_to_text(_OURS)])
def test_checkpoint_when_it_has_the_topics_id_then_it_is_left_as_it_is(
    tmp_path: Path, text: str
) -> None:
    noted(tmp_path).write_text(text)

    require_ours(tmp_path)

    assert noted(tmp_path).read_text() == text


def test_checkpoint_when_the_id_was_cut_off_by_a_crash_then_it_is_noted_again(
    tmp_path: Path,
) -> None:
    noted(tmp_path).write_text("")

    require_ours(tmp_path)

    assert noted(tmp_path).read_text() == id_to_text(_OURS)


def test_checkpoint_when_the_topic_was_created_again_then_refused_with_both_ids(
    tmp_path: Path,
) -> None:
    noted(tmp_path).write_text(id_to_text(_ANOTHER))

    with pytest.raises(InvalidConfigError, match="another topic of the same name") as raised:
        require_ours(tmp_path)

    context = raised.value.context
    assert (context["expected"], context["found"]) == (id_to_text(_OURS), id_to_text(_ANOTHER))
    assert (context["topic"], context["checkpoint"]) == ("letters", "s3a://jobs/repair")
    assert noted(tmp_path).read_text() == id_to_text(_ANOTHER)
