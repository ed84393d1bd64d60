"""The small scopes: each has a few managers and events, whose interleavings are all explored.

A scope prepares its world without interruptions, then names its actors. Each scope must detect the
loss of certain guards (tests.simulation.unguarded_managers).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from rlmm.events.policy import TopicPolicy
from rsm.segment.ranges import OffsetRange
from tests.fakes.world import KEEP_REMOTE, TIP
from tests.simulation.exploration.stage import Stage
from tests.simulation.processes import SimulatedProcess
from tests.simulation.unguarded_managers import (
    WithoutEpochCheck,
    WithoutExpectedState,
    WithoutFencing,
    WithoutIncarnation,
    WithoutLeases,
    WithoutRecord,
    WithUnfinishedCounting,
)
from tests.simulation.world import MINUTE_MS

_EXPIRING = replace(KEEP_REMOTE, retention_ms=60 * MINUTE_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is explored, and the guards whose loss is detected. `max_states` bounds the exploration.

    `is_large`: the exploration takes minutes, and needs `make explore LARGE=1`.
    """

    name: str
    explores: str
    build: Callable[[Stage], None]
    guards: tuple[type[SimulatedProcess], ...] = ()
    policy: TopicPolicy = KEEP_REMOTE
    brokers: int = 2
    max_states: int = 3_000
    is_large: bool = False

    def stage(self, process_type: type[SimulatedProcess] = SimulatedProcess) -> Stage:
        """Return a new execution of these managers."""
        stage = Stage(policy=self.policy, process_type=process_type, brokers=self.brokers)
        self.build(stage)
        return stage


def _segments(stage: Stage, count: int) -> None:
    """Write rolled segments of one batch each, all committed, and older than local retention."""
    for _ in range(count):
        stage.world.produce(2)
        stage.world.roll()
    stage.world.clock.advance(MINUTE_MS)


def _claims(stage: Stage) -> None:
    """Manager 1 has stored all and trims; manager 2 claims the same partition and trims, too."""
    _segments(stage, 3)
    one, other = stage.manager(1), stage.manager(1)
    stage.work(one)
    stage.actor("manager 1", lambda: stage.work(one), runs=one)
    stage.actor("manager 2", lambda: stage.work(other), runs=other)


def _copies(stage: Stage) -> None:
    """Both managers claim, copy, and delete what the other one has not finished."""
    _segments(stage, 1)
    one, other = stage.manager(1), stage.manager(1)
    stage.actor("manager 1", lambda: stage.work(one), runs=one)
    stage.actor("manager 2", lambda: stage.work(other), runs=other)


def _trims(stage: Stage) -> None:
    """Broker 1 has stored all and trims; meanwhile an unclean leader replaces it for a while."""
    world = stage.world
    _segments(stage, 1)
    world.cut_off.add(2)
    _segments(stage, 2)
    one, other = stage.manager(1), stage.manager(2)
    stage.cycle(one)
    stage.run_jobs(one)

    def elect_lagging() -> None:
        world.elect_unclean(2)
        world.produce(6)
        world.roll()
        world.produce(2)
        world.roll()

    stage.actor("manager 1", lambda: stage.cycle(one), runs=one)
    stage.actor("manager 2", lambda: stage.cycle(other), runs=other)
    stage.environment(
        {
            "broker 2 is elected though it lags, and takes records": elect_lagging,
            "broker 1 is elected": lambda: world.elect(1),
        }
    )


def _expiry(stage: Stage) -> None:
    """Records below the log start are deleted, while they are leased and the leader changes."""
    world = stage.world
    one, other = stage.manager(1), stage.manager(2)
    _segments(stage, 1)
    stage.work(one)
    world.clock.advance(61 * MINUTE_MS)
    _segments(stage, 1)
    world.note_allowed_start()
    stage.work(one, 2)
    assert world.leader().log_start_offset == world.state().log_start_offset == 2
    leased = OffsetRange(start_offset=0, end_offset=2)
    stage.actor("manager 1", lambda: stage.work(one), runs=one)
    stage.actor("manager 2", lambda: stage.work(other), runs=other)
    stage.environment(
        {
            "a reader leases offsets 0 and 1": lambda: world.take_lease(TIP, leased, MINUTE_MS),
            "broker 2 is elected": lambda: world.elect(2),
        }
    )


def _finishing(stage: Stage) -> None:
    """A copy ends while another manager of the same broker deletes it as unfinished."""
    _segments(stage, 1)
    one, other = stage.manager(1), stage.manager(1)
    stage.cycle(one)
    stage.run_jobs(one, 1)

    def delete() -> None:
        stage.cycle(other)
        stage.run_jobs(other, 1)

    stage.actor("copy of manager 1", lambda: stage.run_jobs(one), runs=one)
    stage.actor("manager 2", delete, runs=other)


def _restart(stage: Stage) -> None:
    """A manager is killed at any point of its work, and another run of it begins."""
    _segments(stage, 2)
    one = stage.manager(1)
    stage.work(one)
    _segments(stage, 1)

    def restart() -> None:
        one.effects.crashed = True
        stage.work(stage.manager(1), 2)

    stage.actor("manager 1", lambda: stage.work(one, 2), runs=one)
    stage.actor("manager 1 again", restart)


def _client(stage: Stage, *, is_followed: bool = False) -> None:
    """A client deletes records while they are copied, and the leader changes."""
    world = stage.world
    _segments(stage, 2)
    one, other = stage.manager(1), stage.manager(2)
    stage.cycle(one)
    stage.run_jobs(one, 1)
    stage.actor("manager 1", lambda: stage.work(one), runs=one)
    if is_followed:
        stage.actor("manager 2", lambda: stage.work(other), runs=other)
    stage.environment(
        {
            "a client deletes below 3": lambda: world.delete_records(3),
            "broker 2 is elected": lambda: world.elect(2),
        }
    )


SCOPES = (
    Scope(
        name="claims",
        explores="two managers of one broker claim one partition and trim it",
        build=_claims,
        brokers=1,
        guards=(WithoutFencing, WithoutIncarnation, WithoutRecord),
    ),
    Scope(
        name="trims",
        explores="a trim between its plan and DeleteRecords, and two elections, one unclean",
        build=_trims,
        guards=(WithoutEpochCheck, WithoutRecord),
    ),
    Scope(
        name="expiry",
        explores="the deletion of expired segments, a read lease, and an election",
        build=_expiry,
        policy=_EXPIRING,
        guards=(WithoutLeases,),
    ),
    Scope(
        name="finishing",
        explores="a copy that finishes, and its deletion by another manager",
        build=_finishing,
        brokers=1,
        guards=(WithoutExpectedState, WithoutIncarnation),
    ),
    Scope(
        name="restart",
        explores="a manager killed at any point, and its next run",
        build=_restart,
        brokers=1,
        guards=(WithUnfinishedCounting, WithoutRecord),
    ),
    Scope(
        name="client",
        explores="a client's DeleteRecords, copies, and an election",
        build=_client,
        guards=(WithUnfinishedCounting,),
    ),
    Scope(
        name="copies",
        explores="two managers of one broker claim, copy, and delete each other's attempts",
        build=_copies,
        brokers=1,
        guards=(WithoutExpectedState, WithoutIncarnation),
        max_states=200_000,
        is_large=True,
    ),
    Scope(
        name="client-and-leaders",
        explores="a client's DeleteRecords and copies, and the next leader's work",
        build=partial(_client, is_followed=True),
        guards=(WithUnfinishedCounting,),
        max_states=200_000,
        is_large=True,
    ),
)
