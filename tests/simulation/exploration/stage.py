"""One execution of a scope: a world, its managers, and the actors that a schedule interleaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlmm.events.policy import TopicPolicy
from tests.fakes.effects import Act, ProcessCrashError
from tests.fakes.ids import CountedIds
from tests.fakes.metadata import FreshMetadata
from tests.fakes.process import FakeSystems, Process
from tests.fakes.world import Host
from tests.simulation.checks import WorldChecks
from tests.simulation.exploration.actors import END, Actor
from tests.simulation.exploration.observations import (
    Observations,
    ObservedClock,
    ObservedMetadata,
    ObservedSource,
)
from tests.simulation.exploration.world_state import FoldedLog, world_digest
from tests.simulation.processes import SimulatedProcess
from tests.simulation.world import HOUR_MS, SimulatedWorld

_IDS_APART = 1 << 32
_NO_MANAGER = slice(0)
_QUIET_CYCLES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class StateView:
    """All of a state that a step of one actor reads or changes."""

    shared: bytes
    topic: bytes
    managers: tuple[bytes, ...]
    read_offsets: tuple[int, ...]
    actor: tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageState:
    """Equal for two schedules only if all that can follow is the same for both.

    `shared` is a digest of the world and of its past, `managers` are digests of what each manager
    has observed, and `actors` is the steps and the point of each actor. `topic` is a digest of the
    metadata topic with the order of its records, and `read_offsets` is how far each manager has
    read it. Equal states may differ in the last two: some orders have one meaning, and a question
    first reads to the end.
    """

    shared: bytes
    topic: bytes = field(compare=False)
    read_offsets: tuple[int, ...] = field(compare=False)
    managers: tuple[bytes, ...]
    actors: tuple[tuple[int, str], ...]

    def ready(self) -> list[int]:
        """Return the numbers of the actors that have not ended."""
        return [number for number, (_, point) in enumerate(self.actors) if point != END]

    def view(self, number: int, managers: slice) -> StateView:
        """Return what an actor that runs these managers can see."""
        return StateView(
            shared=self.shared,
            topic=self.topic,
            managers=self.managers[managers],
            read_offsets=self.read_offsets[_caches_of(managers)],
            actor=self.actors[number],
        )

    def with_view(self, number: int, managers: slice, view: StateView) -> StageState:
        """Return this state with an actor's view replaced."""
        changed, offsets = list(self.managers), list(self.read_offsets)
        changed[managers], offsets[_caches_of(managers)] = view.managers, view.read_offsets
        actors = list(self.actors)
        actors[number] = view.actor
        return StageState(
            shared=view.shared,
            topic=view.topic,
            managers=tuple(changed),
            read_offsets=tuple(offsets),
            actors=tuple(actors),
        )


class ExploredWorld(SimulatedWorld):
    """A world whose managers have their own ids, and record all their observations."""

    def __init__(self, *, policy: TopicPolicy, process_type: type[Process], brokers: int) -> None:
        super().__init__(policy=policy, process_type=process_type, brokers=brokers)
        self.observations: list[Observations] = []

    def systems_of(self, host: Host) -> FakeSystems:
        seen = Observations()
        self.observations.append(seen)
        external = super().systems_of(host)
        return replace(
            external,
            source=ObservedSource(external.source, host.replicas, seen),
            clock=ObservedClock(external.clock, seen),
            new_id=CountedIds(len(self.observations) * _IDS_APART),
            recorder=lambda _, act: self._note(seen, act),
        )

    def _note(self, seen: Observations, act: Act) -> None:
        seen.note_act(act)


class Stage:
    """Builds the world, then takes the steps of a schedule. `trail` is what each step led to.

    `managers_of`: for each actor the managers whose memory its steps read or change.
    """

    def __init__(
        self, *, policy: TopicPolicy, process_type: type[SimulatedProcess], brokers: int
    ) -> None:
        self.world = ExploredWorld(
            policy=policy, process_type=_observed(process_type), brokers=brokers
        )
        self._log = FoldedLog(self.world.topic)
        self.actors: list[Actor] = []
        self.managers_of: list[slice] = []
        self.trail: list[str] = []
        self._current: Actor | None = None
        self._checks = WorldChecks(self.world)
        self.world.audit.asks_in_job = self._asks_in_job

    # ------------------------------------------------------------------------ what scopes use

    def manager(self, node_id: int) -> SimulatedProcess:
        """Start a manager next to a broker; it has registered."""
        process = self.world.start(node_id)
        assert isinstance(process, SimulatedProcess)
        process.effects.interrupt = self._interrupt
        process.beat()
        return process

    def actor(
        self, name: str, script: Callable[[], None], *, runs: SimulatedProcess | None = None
    ) -> None:
        """Add an actor that runs `script`, and can be interrupted at every act of a manager.

        `runs` is the only manager whose memory the script uses. None: the script starts its
        managers itself, as no other actor does.
        """
        self.actors.append(Actor(name, script))
        processes = self.world.processes
        number = len(processes) if runs is None else processes.index(runs)
        self.managers_of.append(slice(number, None if runs is None else number + 1))

    def environment(self, steps: Mapping[str, Callable[[], object]]) -> None:
        """Add an actor that takes these steps in order, each at once and without a manager."""
        names = list(steps)

        def script() -> None:
            for number, step in enumerate(steps.values()):
                step()
                if number + 1 < len(names):
                    self._pause(f"before: {names[number + 1]}")

        self.actors.append(Actor("environment", script, first_point=f"before: {names[0]}"))
        self.managers_of.append(_NO_MANAGER)

    def cycle(self, process: SimulatedProcess) -> None:
        """Let a manager run a cycle."""
        process.step()

    def run_jobs(self, process: SimulatedProcess, most: int = 1_000) -> None:
        """Let a manager run the waiting jobs, oldest first, and those that they submit."""
        for _ in range(most):
            if not (process.alive and process.jobs.waiting):
                return
            if self._current is not None:
                self._current.in_job = True
            try:
                process.jobs.run(0)
            except ProcessCrashError:
                return
            if self._current is not None:
                self._current.in_job = False

    def work(self, process: SimulatedProcess, cycles: int = 1) -> None:
        """Let a manager run cycles, each with all jobs that it finds to do."""
        for _ in range(cycles):
            self.cycle(process)
            self.run_jobs(process)

    # ------------------------------------------------------------------------ the schedule

    def ready(self) -> list[int]:
        """Return the numbers of the actors that have not ended."""
        return [number for number, actor in enumerate(self.actors) if actor.point != END]

    def take(self, number: int) -> None:
        """Let one actor run from its present point to the next one."""
        actor = self.actors[number]
        from_point = actor.point
        for seen in self.world.observations:
            seen.actor = actor.name
        self.world.note_allowed_start()
        self._current = actor
        try:
            actor.advance()
        finally:
            self._current = None
        self.world.note_allowed_start()
        self.trail.append(f"{actor.name}: {from_point} → {actor.point}")

    def state(self) -> StageState:
        """Return the present state of everything."""
        return StageState(
            shared=world_digest(self.world, self._log),
            topic=self._log.order(),
            read_offsets=tuple(map(_read_offset, self.world.processes)),
            managers=tuple(seen.digest() for seen in self.world.observations),
            actors=tuple((actor.steps_count, actor.point) for actor in self.actors),
        )

    def broken(self) -> Sequence[str]:
        """Return the invariants that do not hold now."""
        return self._checks.broken()

    def unfinished(self) -> Sequence[str]:
        """Repair everything and start new managers; return what is broken or left to do at rest."""
        self.world.heal()
        for process in self.world.processes:
            process.effects.crashed = True
        managers = [self.manager(node_id) for node_id in self.world.hosts]
        self.world.clock.advance(4 * HOUR_MS)
        if not self._settled(managers):
            return [f"still changing after {_QUIET_CYCLES} quiet cycles"]
        return [*self._checks.broken(), *self._checks.unfinished()]

    def close(self) -> None:
        """End all actors at their present points."""
        for actor in self.actors:
            actor.close()

    def _settled(self, managers: Sequence[SimulatedProcess]) -> bool:
        for _ in range(_QUIET_CYCLES):
            before = self.world.fingerprint()
            self.world.clock.advance(30_000)
            for process in managers:
                self.work(process)
            for replica in self.world.replicas():
                replica.delete_old_files()
            self.world.note_allowed_start()
            if self.world.fingerprint() == before:
                return True
        return False

    def _interrupt(self, name: str, is_over: bool) -> None:
        self._pause(f"{'after' if is_over else 'before'} {name}")

    def _pause(self, point: str) -> None:
        if self._current is not None:
            self._current.pause(point)

    def _asks_in_job(self, process: Process) -> bool:
        return self._current is not None and self._current.in_job


def _caches_of(managers: slice) -> slice:
    """Return the managers whose caches these may use: all of them if new managers may start."""
    return slice(None) if managers.stop is None else managers


def _read_offset(process: Process) -> int:
    metadata = process.ports.metadata
    assert isinstance(metadata, FreshMetadata)
    return metadata.read_offset()


def _observed(process_type: type[SimulatedProcess]) -> type[SimulatedProcess]:
    """Return the same manager, whose metadata records its answers."""
    metadata_type = type("Observed", (ObservedMetadata, process_type.metadata_type), {})
    return type(process_type.__name__, (process_type,), {"metadata_type": metadata_type})
