"""The actions that may happen at any moment; each returns what it did, or None for nothing.

Actions use the simulation's random numbers only, so a seed repeats the whole run.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from rlmm import codec
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import BytesSource
from tests.segment_builder import build_batch, record
from tests.simulation.processes import SimulatedProcess
from tests.simulation.world import HOUR_MS, MINUTE_MS, SimulatedWorld

PAUSES_MS = (1_000, 20_000, 2 * MINUTE_MS, 11 * MINUTE_MS, 3 * HOUR_MS, 3 * HOUR_MS)
MAX_PROCESSES = 5


class Stage(Protocol):
    """An action's view of the simulation; `tip` is the partition that it affects."""

    random: Random
    world: SimulatedWorld
    tip: TopicIdPartition

    def living(self) -> list[SimulatedProcess]:
        """Return the running managers, oldest first."""

    def in_cycle(self, process: SimulatedProcess) -> bool:
        """Return whether the manager is in a cycle, because it runs one cycle at a time."""

    def is_nested(self) -> bool:
        """Return whether a manager is in the middle of a cycle or a job."""

    def cycle(self, process: SimulatedProcess) -> None:
        """Let a manager run a cycle."""

    def watch(self, process: SimulatedProcess) -> None:
        """Let a manager look for streams that are due."""

    def run_job(self, process: SimulatedProcess, number: int) -> None:
        """Let a manager run a job of a lane."""

    def start(self, node_id: int) -> None:
        """Start a manager next to a broker."""


Action = Callable[[Stage], str | None]


def produce(stage: Stage) -> str:
    count = stage.random.randint(1, 8)
    commit = stage.random.random() < 0.8
    stage.world.produce(count, commit=commit, tip=stage.tip)
    return f"produce {count}{'' if commit else ', not committed'}"


def roll(stage: Stage) -> str:
    stage.world.roll(tip=stage.tip)
    return f"roll at {stage.world.leader(stage.tip).end_offset}"


def fill_segment(stage: Stage) -> str:
    """Write, commit and roll a segment, as in most cases."""
    stage.world.produce(stage.random.randint(1, 8), tip=stage.tip)
    stage.world.roll(tip=stage.tip)
    return f"a segment is full at {stage.world.leader(stage.tip).end_offset}"


def commit(stage: Stage) -> str:
    stage.world.commit(tip=stage.tip)
    return f"commit {stage.world.leader(stage.tip).high_watermark}"


def open_transaction(stage: Stage) -> str | None:
    leader = stage.world.leader(stage.tip)
    if leader.open_transaction_offset is not None:
        return None
    leader.open_transaction_offset = leader.end_offset
    return f"a transaction opens at {leader.end_offset}"


def end_transaction(stage: Stage) -> str | None:
    opened = stage.world.leader(stage.tip).open_transaction_offset
    if opened is None:
        return None
    stage.world.end_transaction(stage.tip)
    return f"the transaction from {opened} ends"


def elect_clean(stage: Stage) -> str | None:
    world = stage.world
    found = [n for n in world.hosts if n not in world.cut_off and n != world.leader_id(stage.tip)]
    if not found:
        return None
    node_id = stage.random.choice(found)
    if stage.random.random() < 0.3:
        world.cut_off.add(world.leader_id(stage.tip))
    world.elect(node_id, tip=stage.tip)
    return f"broker {node_id} is elected, cut off are {sorted(world.cut_off)}"


def elect_unclean(stage: Stage) -> str | None:
    world = stage.world
    lagging = sorted(world.cut_off - {world.leader_id(stage.tip)})
    if not lagging:
        return None
    node_id = stage.random.choice(lagging)
    if stage.random.random() < 0.3:
        world.cut_off.add(world.leader_id(stage.tip))
    world.elect_unclean(node_id, stage.tip)
    return f"broker {node_id} is elected though it lags, at {world.leader(stage.tip).end_offset}"


def cut_off(stage: Stage) -> str | None:
    world = stage.world
    found = [n for n in world.hosts if n not in world.cut_off and n != world.leader_id(stage.tip)]
    if len(found) < 2:
        return None
    node_id = stage.random.choice(found)
    world.cut_off.add(node_id)
    return f"broker {node_id} is cut off"


def heal(stage: Stage) -> str | None:
    if not stage.world.cut_off:
        return None
    stage.world.cut_off.clear()
    stage.world.commit_all()
    return "all brokers hear of everything"


def write_to_deposed(stage: Stage) -> str | None:
    """Write to a deposed leader that does not know it; it cannot commit the records."""
    deposed = stage.world.deposed(stage.tip)
    if not deposed:
        return None
    replica = stage.random.choice(deposed)
    epoch, base = replica.leader_epoch, replica.end_offset
    assert epoch is not None
    content = [record(base + n, b"lost", timestamp_ms=stage.world.clock.wall_ms()) for n in (0, 1)]
    replica.append(build_batch(content, leader_epoch=epoch))
    if stage.random.random() < 0.5:
        replica.roll()
    return f"a deposed leader takes records at {base}"


def clear_disks(stage: Stage) -> str:
    for replica in stage.world.replicas():
        replica.delete_old_files()
    return "brokers delete old files"


def delete_records(stage: Stage) -> str | None:
    world = stage.world
    low = world.state(stage.tip).first_readable_offset or 0
    high = world.leader(stage.tip).high_watermark
    if high <= low:
        return None
    offset = stage.random.randint(low + 1, high)
    world.delete_records(offset, tip=stage.tip)
    return f"a client deletes below {offset}"


def pass_time(stage: Stage) -> str:
    duration_ms = stage.random.choice(PAUSES_MS)
    stage.world.clock.advance(duration_ms)
    return f"{duration_ms} ms pass"


def cycle(stage: Stage) -> str | None:
    found = [p for p in stage.living() if not stage.in_cycle(p)]
    if not found:
        return None
    process = stage.random.choice(found)
    stage.world.clock.advance(1_000)
    stage.cycle(process)
    return f"cycle of {name_of(process)}"


def work(stage: Stage) -> str | None:
    """Run a cycle and all its jobs, as in quiet times."""
    found = [p for p in stage.living() if not stage.in_cycle(p)]
    leaders = [p for p in found if p.ports.broker.node_id == stage.world.leader_id(stage.tip)]
    if leaders and stage.random.random() < 0.5:
        found = leaders
    if not found:
        return None
    process = stage.random.choice(found)
    stage.world.clock.advance(1_000)
    stage.cycle(process)
    while process.alive and process.jobs.waiting:
        stage.run_job(process, 0)
    return f"work of {name_of(process)}"


def run_job(stage: Stage) -> str | None:
    found = [p for p in stage.living() if p.jobs.waiting]
    if not found:
        return None
    process = stage.random.choice(found)
    stage.run_job(process, stage.random.randrange(len(process.jobs.waiting)))
    return f"job of {name_of(process)}"


def kill(stage: Stage) -> str | None:
    found = stage.living()
    if not found:
        return None
    process = stage.random.choice(found)
    process.effects.crashed = True
    return f"{name_of(process)} is killed"


def start(stage: Stage) -> str | None:
    """Start a manager next to a broker without one."""
    missing = [n for n in stage.world.hosts if not stage.world.running(n)]
    if not missing:
        return None
    node_id = stage.random.choice(missing)
    stage.start(node_id)
    return f"a manager starts next to broker {node_id}"


def start_another(stage: Stage) -> str | None:
    """Start a second manager next to a broker, by mistake."""
    if len(stage.living()) >= MAX_PROCESSES:
        return None
    node_id = stage.world.leader_id(stage.tip)
    stage.start(node_id)
    return f"another manager starts next to broker {node_id}"


def toggle_store(stage: Stage) -> str:
    stage.world.store_away = not stage.world.store_away
    return f"the store is {'away' if stage.world.store_away else 'back'}"


def toggle_topic(stage: Stage) -> str:
    stage.world.topic_away = not stage.world.topic_away
    return f"the metadata topic is {'away' if stage.world.topic_away else 'back'}"


def toggle_broker(stage: Stage) -> str:
    host = stage.world.hosts[stage.random.choice(sorted(stage.world.hosts))]
    host.broker.reachable = not host.broker.reachable
    return f"broker {host.node_id} is {'back' if host.broker.reachable else 'unreachable'}"


def compact_metadata(stage: Stage) -> str:
    """Run the log cleaner.

    Tombstones stay: their removal takes days, and no cache lags by days.
    """
    log = stage.world.topic
    end_offset = stage.random.randint(0, log.end_offset(0))
    log.compact(0, end_offset)
    return f"the metadata topic is compacted below {end_offset}"


def lose_cache(stage: Stage) -> str | None:
    """End a host's managers, and remove their state directory."""
    node_id = stage.random.choice(sorted(stage.world.hosts))
    stage.world.lose_cache(node_id)
    return f"the cache of broker {node_id}'s host is lost"


def land_late(stage: Stage) -> str | None:
    """Complete a late upload."""
    world = stage.world
    found = [
        (process, upload)
        for process in world.processes
        if isinstance(process, SimulatedProcess)
        for upload in process.on_the_way
        if world.clock.wall_ms() <= upload.deadline_ms
    ]
    if not found:
        return None
    process, upload = stage.random.choice(found)
    process.on_the_way.remove(upload)
    if not world.objects.exists(upload.name):
        world.objects.create_with_content(upload.name, BytesSource(content=upload.content))
    return f"{upload.name} lands"


def land_late_write(stage: Stage) -> str | None:
    """Let the record of a write without a response arrive in the metadata topic."""
    world = stage.world
    found = [
        (process, request)
        for process in world.processes
        if isinstance(process, SimulatedProcess)
        for request in process.requests.on_the_way
        if world.clock.wall_ms() <= request.deadline_ms
    ]
    if not found or world.topic_away:
        return None
    process, request = stage.random.choice(found)
    process.requests.on_the_way.remove(request)
    offset = world.topic.append(0, request.key, request.value).offset
    if request.value is not None:
        world.audit.note_late(process, codec.decode(request.key, request.value))
    return f"a record of {name_of(process)} lands late at {offset}"


def name_of(process: SimulatedProcess) -> str:
    return f"manager {process.incarnation.int} of broker {process.ports.broker.node_id}"


# The frequency of each action; a seed omits some and has more of others.
ACTIONS: tuple[tuple[Action, float], ...] = (
    (cycle, 8),
    (run_job, 12),
    (work, 20),
    (fill_segment, 12),
    (produce, 4),
    (roll, 4),
    (commit, 1),
    (open_transaction, 1),
    (end_transaction, 2),
    (elect_clean, 2),
    (elect_unclean, 2),
    (cut_off, 2),
    (heal, 1),
    (write_to_deposed, 1),
    (clear_disks, 2),
    (delete_records, 0.5),
    (pass_time, 3),
    (kill, 1),
    (start, 4),
    (start_another, 0.7),
    (toggle_store, 0.5),
    (toggle_topic, 0.5),
    (toggle_broker, 0.5),
    (compact_metadata, 0.5),
    (lose_cache, 0.3),
)
