"""The partitions that the options select among those of the cluster."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rsm.segment.errors import InvalidConfigError
from spark_tools.reading.chosen_partitions import choose, require_assigned, with_added
from tests.metadata_builder import ORDERS
from tests.unit.spark_tools.reading.test_planner import BOTH, SECOND, options


def test_partitions_when_one_is_assigned_that_there_is_not_then_said() -> None:
    found = {"orders": BOTH}
    require_assigned(found, options(assign='{"orders":[0,1]}'))
    require_assigned(found, options())

    with pytest.raises(InvalidConfigError, match="no such partition") as refused:
        require_assigned(found, options(assign='{"orders":[0,3,2]}'))

    assert refused.value.context == {
        "topic": "orders",
        "partition": 2,
        "advice": "Name partitions that exist",
    }


def test_partitions_when_some_are_assigned_then_only_they_are_chosen() -> None:
    found = {"orders": BOTH}

    assert choose(found, options()) == [*BOTH]
    assert choose(found, options(assign='{"orders":[1]}')) == [SECOND]


def test_partitions_when_looked_for_again_then_only_new_ones_are_added() -> None:
    """A topic that was deleted and created again stays the one that the query began with."""
    third = replace(ORDERS, partition=2)
    created_again = replace(ORDERS, topic_id=UUID(int=2))

    assert with_added(BOTH, [*BOTH, third]) == (*BOTH, third)
    assert with_added(BOTH, [created_again]) == BOTH
