"""A topic is streamed in small segments, which are merged; a gateway reads objects (PIP-76)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.events.policy import topic_policies
from rlmm.registration import LEASE_MS
from rsm.segment.metadata import SegmentState
from rsm.segment.offload_settings import OffloadMode
from tests.fakes.gateways import gateway_at
from tests.simulation.actions import Stage
from tests.simulation.processes import SimulatedProcess
from tests.simulation.streaming import ROLLOVER_MS

_SEGMENT_BYTES = 60_000
_COUNTS = (2, 4, 6)
_MERGES = 0.7


def stream_small(stage: Stage) -> str | None:
    """Switch to streams; then store a few records at a time, as a slow topic does."""
    world = stage.world
    policies = topic_policies(world.metadata)
    if not policies:
        return None
    (policy,) = policies
    if policy.offload_mode is not OffloadMode.STREAM:
        world.set_policy(
            replace(
                policy,
                offload_mode=OffloadMode.STREAM,
                offload_segment_max_bytes=_SEGMENT_BYTES,
                offload_segment_rollover_ms=ROLLOVER_MS,
            )
        )
        return "the topic is streamed in small segments"
    if stage.is_nested():
        return None  # a merge needs several segments of about one size
    count = stage.random.choice(_COUNTS)
    for _ in range(count):
        if world.deleted_topics():  # by a nested action
            break
        world.produce(1, tip=stage.tip)
        for process in _permitted(stage):
            _stream(stage, process)
    if stage.random.random() < _MERGES:
        for process in _of_leader(stage):
            stage.cycle(process)
            _run_jobs(stage, process)
    return f"a record is streamed {count} times"


def _permitted(stage: Stage) -> Iterator[SimulatedProcess]:
    """Yield the managers next to the leader, after a cycle that permits them to stream."""
    _end_outages(stage)
    for process in _of_leader(stage):
        if not any(task.streaming.permit for task in _led(stage, process)):
            stage.cycle(process)
            _run_jobs(stage, process)
        yield process


def _of_leader(stage: Stage) -> list[SimulatedProcess]:
    """Return the managers next to the leader that are not in a cycle."""
    node_id = stage.world.leader_id(stage.tip)
    return [
        each
        for each in stage.living()
        if each.ports.broker.node_id == node_id and not stage.in_cycle(each)
    ]


def _end_outages(stage: Stage) -> None:
    """End every outage that prevents copies, and give the leader a manager that leads."""
    world = stage.world
    node_id = world.leader_id(stage.tip)
    world.hosts[node_id].broker.reachable = True
    world.store_away = world.topic_away = False
    world.end_transaction(stage.tip)
    if not any(_led(stage, process) for process in _of_leader(stage)):
        world.elect(node_id, tip=stage.tip)
    if not world.running(node_id):
        stage.start(node_id)


def _led(stage: Stage, process: SimulatedProcess) -> list[PartitionTask]:
    return [task for task in process.leadership.led() if task.topic_id_partition == stage.tip]


def _stream(stage: Stage, process: SimulatedProcess) -> None:
    """Let the rollover time of new records pass, and run all jobs."""
    for _ in range(2):
        if process.alive:
            stage.watch(process)
        _run_jobs(stage, process)
        stage.world.clock.advance(ROLLOVER_MS)


def _run_jobs(stage: Stage, process: SimulatedProcess) -> None:
    while process.alive and process.jobs.waiting:
        stage.run_job(process, 0)


def read_through_gateway(stage: Stage) -> str:
    """Register a gateway; from now on it reads the objects of the segments that it knows now."""
    world = stage.world
    gateway_at(world, world.topic.end_offset(0))
    world.gateway_reads = frozenset(
        stored.key
        for tip in world.tips
        for record in world.records(SegmentState.COPY_SEGMENT_FINISHED, tip=tip)
        for stored in record.metadata.objects
    )
    world.gateway_until_ms = world.clock.wall_ms() + LEASE_MS
    return f"a gateway knows {len(world.gateway_reads)} objects"
