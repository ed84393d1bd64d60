"""Actions that few stories have: the share of the stories with each one, and its weight there."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.actions import Action, land_late, land_late_write
from tests.simulation.damaged_objects import damage_object
from tests.simulation.merging import read_through_gateway, stream_small
from tests.simulation.streaming import stream
from tests.simulation.topic_deletion import delete_topic

RARE_ACTIONS: Mapping[str, tuple[Action, float, float]] = {
    "deletion": (delete_topic, 0.1, 4),
    "late": (land_late, 0.2, 4),
    "damage": (damage_object, 0.15, 5),
    "stream": (stream, 0.3, 12),
    "answers": (land_late_write, 0.4, 20),
    "merging": (stream_small, 0.3, 20),
    "gateway": (read_through_gateway, 0.2, 8),
}
"""By its name, each action with its share of the stories and its weight in these."""
