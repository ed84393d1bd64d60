from __future__ import annotations

import signal
from dataclasses import dataclass, field
from random import Random

from rlm.process.child import ChildSpec
from rlm.process.restart_backoff import BackoffSettings, RestartBackoff
from rlm.process.supervisor import Supervisor
from rsm.segment.errors import RetriableError

MANAGER = ChildSpec(name="manager", command=("m",))
GATEWAY = ChildSpec(name="gateway", command=("g",))


@dataclass
class FakeChild:
    pid: int
    code: int | None = None
    signals: list[str] = field(default_factory=list)

    def exit_code(self) -> int | None:
        return self.code

    def reload(self) -> None:
        self.signals.append("HUP")

    def terminate(self) -> None:
        self.signals.append("TERM")

    def write_stacks(self) -> None:
        self.signals.append("QUIT")

    def kill(self) -> None:
        self.signals.append("KILL")


@dataclass
class FakeSpawner:
    children: list[FakeChild] = field(default_factory=list)
    refusals: int = 0

    def spawn(self, spec: ChildSpec) -> FakeChild:
        if self.refusals:
            self.refusals -= 1
            raise RetriableError("no memory")
        self.children.append(FakeChild(pid=100 + len(self.children)))
        return self.children[-1]


def _supervisor(spawner: FakeSpawner, *specs: ChildSpec) -> Supervisor:
    settings = BackoffSettings(initial_ms=1_000, max_ms=8_000)
    return Supervisor(
        specs,
        spawner,
        lambda: RestartBackoff(settings, Random(1)),
        kill_after_ms=15_000,
        config_problem=lambda: "unknown key (key=lgo.dirs)",
    )


def test_step_when_first_then_starts_every_child() -> None:
    spawner = FakeSpawner()
    supervisor = _supervisor(spawner, MANAGER, GATEWAY)

    events = supervisor.step(0)

    assert [event.message for event in events] == ["process started"] * 2
    assert [status.pid for status in supervisor.statuses()] == [100, 101]
    assert not supervisor.has_ended


def test_step_when_a_child_ended_then_restarts_it_alone_after_its_pause() -> None:
    spawner = FakeSpawner()
    supervisor = _supervisor(spawner, MANAGER, GATEWAY)
    supervisor.step(0)
    spawner.children[0].code = -9

    supervisor.step(10)
    assert [status.pid for status in supervisor.statuses()] == [None, 101]
    supervisor.step(10 + 799)
    assert len(spawner.children) == 2
    supervisor.step(10 + 1_201)

    assert [status.pid for status in supervisor.statuses()] == [102, 101]
    assert [status.start_count for status in supervisor.statuses()] == [2, 1]


def test_step_when_start_fails_then_tries_again_later() -> None:
    spawner = FakeSpawner(refusals=1)
    supervisor = _supervisor(spawner, MANAGER)

    (event,) = supervisor.step(0)
    supervisor.step(1_201)

    assert event.message == "cannot start process: trying again after a pause"
    assert len(spawner.children) == 1


def test_step_when_a_first_start_exits_with_2_then_stops_all_and_ends_with_2() -> None:
    spawner = FakeSpawner()
    supervisor = _supervisor(spawner, MANAGER, GATEWAY)
    supervisor.step(0)
    spawner.children[0].code = 2

    supervisor.step(10)
    assert spawner.children[1].signals == ["TERM"]
    spawner.children[1].code = 0
    supervisor.step(60_000)

    assert supervisor.has_ended
    assert supervisor.exit_code == 2
    assert len(spawner.children) == 2


def test_step_when_a_restart_exits_with_2_then_others_run_and_it_starts_again_later() -> None:
    spawner = FakeSpawner()
    supervisor = _supervisor(spawner, MANAGER, GATEWAY)
    supervisor.step(0)
    spawner.children[0].code = 1
    supervisor.step(10)
    supervisor.step(1_300)
    spawner.children[2].code = 2

    (event,) = supervisor.step(1_400)
    manager, gateway = supervisor.statuses()
    supervisor.step(1_400 + 1_599)
    assert len(spawner.children) == 3  # the second pause is twice the first
    supervisor.step(1_400 + 2_401)

    assert event.needs_action
    assert dict(event.fields)["problem"] == "unknown key (key=lgo.dirs)"
    assert manager.failure == "its configuration is wrong: unknown key (key=lgo.dirs)"
    assert (manager.pid, gateway.pid, spawner.children[1].signals) == (None, 101, [])
    assert not supervisor.is_stopping
    assert [each.failure for each in supervisor.statuses()] == ["", ""]


def test_statuses_when_a_child_ended_then_its_failure_until_it_runs_again() -> None:
    spawner = FakeSpawner()
    supervisor = _supervisor(spawner, MANAGER)
    supervisor.step(0)
    spawner.children[0].code = -9

    supervisor.step(10)
    assert [each.failure for each in supervisor.statuses()] == ["it ended with exit code -9"]
    supervisor.step(10 + 1_201)

    assert [each.failure for each in supervisor.statuses()] == [""]


def test_stop_when_children_end_in_time_then_ends_with_0_and_starts_none() -> None:
    spawner = FakeSpawner()
    supervisor = _supervisor(spawner, MANAGER)
    supervisor.step(0)

    supervisor.stop(5)
    spawner.children[0].code = 0
    supervisor.step(6)

    assert supervisor.has_ended
    assert (supervisor.exit_code, len(spawner.children)) == (0, 1)


def test_stop_when_a_child_waits_for_its_restart_then_ends_at_once() -> None:
    spawner = FakeSpawner()
    supervisor = _supervisor(spawner, MANAGER)
    supervisor.step(0)
    spawner.children[0].code = 1
    supervisor.step(1)

    supervisor.stop(2)

    assert supervisor.has_ended


def test_stop_when_a_child_hangs_then_it_writes_stacks_and_is_killed_once_at_the_deadline() -> None:
    spawner = FakeSpawner()
    supervisor = _supervisor(spawner, MANAGER)
    supervisor.step(0)
    supervisor.stop(0)

    supervisor.step(13_999)
    assert spawner.children[0].signals == ["TERM"]
    supervisor.step(14_000)
    supervisor.step(14_999)
    assert spawner.children[0].signals == ["TERM", "QUIT"]
    supervisor.step(15_000)
    supervisor.step(15_001)
    spawner.children[0].code = -9
    supervisor.step(15_002)

    assert spawner.children[0].signals == ["TERM", "QUIT", "KILL"]
    assert (supervisor.has_ended, supervisor.exit_code) == (True, 1)


def test_stop_when_a_child_cannot_write_its_stacks_then_their_signal_counts_as_a_kill() -> None:
    spawner = FakeSpawner()
    supervisor = _supervisor(spawner, MANAGER)
    supervisor.step(0)
    supervisor.stop(0)
    supervisor.step(14_000)

    spawner.children[0].code = -signal.SIGQUIT
    supervisor.step(14_001)

    assert (supervisor.has_ended, supervisor.exit_code) == (True, 1)


def test_stop_when_asked_twice_then_kills_at_once() -> None:
    spawner = FakeSpawner()
    supervisor = _supervisor(spawner, MANAGER)
    supervisor.step(0)
    supervisor.stop(0)

    supervisor.stop(100)
    supervisor.step(100)

    assert spawner.children[0].signals == ["TERM", "KILL"]
