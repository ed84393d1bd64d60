"""The topic is streamed for a while, and copied by rolled segments again (PIP-76).

Segments are stored as they are, or in blocks: then a streamed object can have several ledgers.
"""

from __future__ import annotations

from dataclasses import replace

from rlmm.events.policy import topic_policies
from rsm.segment.offload_settings import OffloadMode
from tests.fakes.world import LAYOUTS
from tests.simulation.actions import Stage

ROLLOVER_MS = 1_000
_SEGMENT_BYTES = 1_200
_SWITCHES = 0.15


def stream(stage: Stage) -> str | None:
    """Switch the mode now and then; else let the managers look for streams that are due."""
    world = stage.world
    policies = topic_policies(world.metadata)
    if not policies:
        return None
    (policy,) = policies
    is_streamed = policy.offload_mode is OffloadMode.STREAM
    if not is_streamed or stage.random.random() < _SWITCHES:
        layout = stage.random.choice([each.name for each in LAYOUTS])
        mode = OffloadMode.SEGMENT if is_streamed else OffloadMode.STREAM
        world.set_policy(
            replace(
                policy,
                offload_mode=mode,
                offload_segment_max_bytes=_SEGMENT_BYTES,
                offload_segment_rollover_ms=ROLLOVER_MS,
                layout=layout,
            )
        )
        return f"the offload mode is {mode.name}, the layout {layout}"
    world.clock.advance(stage.random.choice((200, ROLLOVER_MS)))
    for process in stage.living():
        stage.watch(process)
    return "managers look for streams"
