"""A topic is streamed in small segments, which are merged; a gateway reads objects (PIP-76)."""

from __future__ import annotations

from dataclasses import replace

from rlmm.registration import LEASE_MS
from rsm.segment.metadata import SegmentState
from rsm.segment.offload_settings import OffloadMode
from tests.simulation.actions import Stage
from tests.simulation.processes import SimulatedProcess
from tests.simulation.streaming import ROLLOVER_MS
from tests.twins.gateways import gateway_at

_SEGMENT_BYTES = 60_000
_COUNTS = (2, 4)


def stream_small(stage: Stage) -> str | None:
    """Switch to streams; then store a few records at a time, as a slow topic does."""
    world = stage.world
    policies = world.metadata.topic_policies()
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
        world.produce(stage.random.randint(1, 3), tip=stage.tip)
        return "a few records are produced"
    _end_outages(stage)
    count = stage.random.choice(_COUNTS)
    for process in stage.living():
        is_next = process.ports.broker.node_id == world.leader_id(stage.tip)
        if is_next and not stage.in_cycle(process):
            stage.cycle(process)
            _run_jobs(stage, process)
            for _ in range(count):
                if world.deleted_topics():  # meanwhile
                    break
                world.produce(stage.random.randint(1, 3), tip=stage.tip)
                _stream(stage, process)
    return f"{count} times a few records are streamed"


def _end_outages(stage: Stage) -> None:
    """Bring back what nothing can be stored without, and give the leader a manager that leads."""
    world = stage.world
    node_id = world.leader_id(stage.tip)
    world.hosts[node_id].broker.reachable = True
    world.store_away = world.topic_away = False
    world.end_transaction(stage.tip)
    if not any(_leads(stage, process) for process in stage.living()):
        world.elect(node_id, tip=stage.tip)
    if not world.running(node_id):
        stage.start(node_id)


def _leads(stage: Stage, process: SimulatedProcess) -> bool:
    tasks = process.leadership.led()
    return any(
        task.topic_id_partition == stage.tip
        and process.ports.broker.node_id == stage.world.leader_id(stage.tip)
        for task in tasks
    )


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
    """A gateway registers what it has applied; from then on it reads the segments of then."""
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
