from __future__ import annotations

from rlm.worker.fresh_id import fresh_id
from rsm.segment.ids import id_to_text


def test_fresh_id_when_many_are_made_then_all_differ_and_none_begins_with_a_dash() -> None:
    made = [id_to_text(fresh_id()) for _ in range(2000)]
    assert len(set(made)) == 2000
    assert not any(text.startswith("-") for text in made)
