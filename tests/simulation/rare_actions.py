"""Actions that few stories know: in how many of all, and how often there."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.actions import Action, land_late, land_late_write
from tests.simulation.damaged_objects import damage_object
from tests.simulation.topic_deletion import delete_topic

RARE_ACTIONS: Mapping[str, tuple[Action, float, float]] = {
    "deletion": (delete_topic, 0.1, 4),
    "late": (land_late, 0.2, 4),
    "damage": (damage_object, 0.15, 5),
    "answers": (land_late_write, 0.4, 20),
}
"""Share of the stories and weight, by the name that a seed draws each with."""
