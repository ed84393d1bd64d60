"""One seed's story: actions in random order, interruptions at random effects, checks after each.

Every step has its own random number, drawn from the seed. So one step can be omitted without a
change of the others.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random

from rlm.facts.local_log import LocalSegment
from rlmm.events.policy import OutagePolicy, TopicPolicy, topic_policies
from rlmm.topic.event_topic import UnknownResultError
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.storage.memory import MemoryChunkStorage
from tests.fakes.effects import ProcessCrashError
from tests.fakes.process import Process
from tests.fakes.unfinished_uploads import UnfinishedStorage
from tests.fakes.world import KEEP_REMOTE, TIP
from tests.simulation.actions import (
    ACTIONS,
    PAUSES_MS,
    Action,
    delete_records,
    elect_unclean,
    land_late,
    name_of,
    toggle_store,
)
from tests.simulation.checks import WorldChecks
from tests.simulation.merging import stream_small
from tests.simulation.other_users import OTHER_USERS, read_in_share_group, take_records
from tests.simulation.processes import (
    LaggingMetadata,
    ShuffledCopies,
    SimulatedProcess,
    UnexpectedError,
)
from tests.simulation.rare_actions import RARE_ACTIONS
from tests.simulation.streaming import ROLLOVER_MS, stream
from tests.simulation.topic_deletion import AFTERWARDS
from tests.simulation.trace import Trace
from tests.simulation.unanswered_writes import RepeatedWriteError
from tests.simulation.world import HOUR_MS, MINUTE_MS, SimulatedWorld

STEPS = 30
_MAX_NESTED = 2
_QUIET_CYCLES = 40
_REMOVAL_ROUNDS = 3
_REMOVAL_CYCLES = 8
_TWO_PARTITIONS = 0.3  # of all stories
_SHEDDING = 0.15
_REUSING = 1 / 3
_BROKEN_UPLOADS = 0.4  # of the uploads to a store that keeps their parts
_PUBLISH = "publish "
_UPLOAD_END = "write of an end"
_BURSTS = (1, 1, 1, 2, 4, 16)  # how much happens while a process is paused


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The first failure: its step, the number of steps, and everything that happened before.

    Step number `steps` is the end, when everything is repaired and must come to rest.
    """

    step: int
    steps: int
    problem: str
    trail: tuple[str, ...]

    @property
    def at_the_end(self) -> bool:
        return self.step == self.steps


class BrokenInvariantError(BaseException):
    """An invariant is broken. No code under test survives it."""


class Simulation:
    """A world and its schedule. `skipped` are omitted steps; `favored` are frequent actions.

    Favoured actions also happen while a process is paused. `trace` gets every event; None records
    nothing. The seed draws the kind of store, unless actions are favored or `storage_type` names
    one.
    """

    def __init__(
        self,
        seed: int,
        *,
        process_type: type[SimulatedProcess] = SimulatedProcess,
        skipped: frozenset[int] = frozenset(),
        favored: Mapping[Action, float] | None = None,
        trace: Trace | None = None,
        storage_type: type[MemoryChunkStorage] | None = None,
    ) -> None:
        self.random = Random(seed)
        self._trace = trace
        self._skipped = skipped
        self._draw_shape()
        self._draw_other_users(0 if favored else seed)
        self._draw_rare(0 if favored else seed)
        if favored:
            self._favor(favored)
        self.tip = TIP
        merges = self._weight_of(stream_small) > 0
        self.world = SimulatedWorld(
            policy=self._draw_policy(merges=merges),
            process_type=process_type,
            partitions=1 if favored else self._draw_partitions(seed),
            merges=merges,
            storage_type=storage_type or self._draw_storage(0 if favored else seed),
        )
        if trace is not None:
            trace.follow(self.world)
        self.world.copies_in_order = not self._shuffles
        if self._weight_of(read_in_share_group):
            self.world.begin_share_groups()
        self._checks = WorldChecks(self.world)
        self._active: list[tuple[SimulatedProcess, bool]] = []
        self._calm = False
        self.world.audit.asks_in_job = self._is_in_job
        self.trail: list[str] = []
        self._steps = Random(self.random.getrandbits(64))
        if isinstance(self.world.objects, UnfinishedStorage):
            self.world.objects.at_end = self._interrupt_upload
            self.world.objects.copied = self._note_copied
        for node_id in self.world.hosts:
            self.start(node_id)

    def _draw_shape(self) -> None:
        """Choose the kind of story: some seeds have no unclean elections, others mostly these."""
        self._actions: list[Action] = [action for action, _ in ACTIONS]
        self._weights = [w * self.random.choice((0, 1, 1, 3)) for _, w in ACTIONS]
        self._weights[:4] = [weight for _, weight in ACTIONS[:4]]  # nothing works without these
        self._expires = self.random.random() < 0.6
        self._fault_rate = self.random.choice((0.0, 0.02, 0.1))
        self._nesting_rate = self.random.choice((0.0, 0.05, 0.2))
        self._lag_rate = self.random.choice((0.0, 0.3, 0.9))
        self._shuffles = self.random.random() < 0.3

    def _draw_other_users(self, seed: int) -> None:
        """Choose other users: some stories have some of them, seed 0 has none."""
        drawn = Random(f"{seed} others")
        for action, weight in OTHER_USERS:
            self._actions.append(action)
            self._weights.append(weight * drawn.choice((0, 0, 0, 1, 3)) if seed else 0)
        sheds = seed and drawn.random() < _SHEDDING
        self._outage_policy = OutagePolicy.SHED_OLDEST if sheds else OutagePolicy.HOLD
        if sheds:
            self._weights[self._actions.index(toggle_store)] = 8
        if sheds or self._weight_of(take_records):
            self._weights[self._actions.index(elect_unclean)] = 0

    def _draw_rare(self, seed: int) -> None:
        for name, (action, share, weight) in RARE_ACTIONS.items():
            self._actions.append(action)
            drawn = Random(f"{seed} {name}").random()
            self._weights.append(weight if seed and drawn < share else 0)

    def _draw_storage(self, seed: int) -> type[MemoryChunkStorage]:
        """Choose the kind of store: some stories stream to one that keeps parts of uploads."""
        if not seed or Random(f"{seed} uploads").random() >= _REUSING:
            return MemoryChunkStorage
        number = self._actions.index(stream)
        self._weights[number] = max(self._weights[number], RARE_ACTIONS["stream"][2])
        return UnfinishedStorage

    def _weight_of(self, action: Action) -> float:
        return self._weights[self._actions.index(action)]

    def _draw_partitions(self, seed: int) -> int:
        """Choose the number of partitions: one finds most faults, because more happens to it."""
        return 2 if Random(f"{seed} partitions").random() < _TWO_PARTITIONS else 1

    def _favor(self, favored: Mapping[Action, float]) -> None:
        if elect_unclean in favored:
            self._expires = False
            self._weights[self._actions.index(delete_records)] = 0
        if take_records in favored:
            self._weights[self._actions.index(elect_unclean)] = 0
        for action, weight in favored.items():
            self._weights[self._actions.index(action)] = weight
        self._nesting_rate = 0.2

    def _draw_policy(self, *, merges: bool) -> TopicPolicy:
        keep = replace(KEEP_REMOTE, outage_policy=self._outage_policy)
        if not self._expires:
            return keep
        return replace(
            keep,
            retention_ms=self.random.choice((-1, 10 * MINUTE_MS, 2 * HOUR_MS)),
            retention_bytes=self.random.choice((-1, -1, 100_000 if merges else 1_500)),
        )

    # ------------------------------------------------------------------------ the schedule

    def run(self, steps: int = STEPS, *, to_the_end: bool = True) -> Failure | None:
        """Return the first failure, or None.

        `to_the_end`: repair all afterwards, and wait for rest.
        """
        for step in range(steps):
            step_seed = self._steps.getrandbits(64)
            if step in self._skipped:
                continue
            self.random = Random(step_seed)
            if (problem := self._problem_of(self._act)) is not None:
                return self._failure(step, steps, problem)
        if to_the_end and (problem := self._problem_of(self._finish)) is not None:
            return self._failure(steps, steps, problem)
        return None

    def _failure(self, step: int, steps: int, problem: str) -> Failure:
        return Failure(step=step, steps=steps, problem=problem, trail=tuple(self.trail))

    def _problem_of(self, part: Callable[[], None]) -> str | None:
        """Return what is wrong after a part of the story, or what ended it early."""
        problem = None
        try:
            part()
            self.check()
        except (BrokenInvariantError, UnexpectedError, RepeatedWriteError) as error:
            problem = str(error)
        except Exception:  # noqa: BLE001 - whatever it is, it is reported with its seed
            problem = traceback.format_exc()
        self._record("check", "all invariants hold" if problem is None else problem)
        return problem

    def _act(self) -> None:
        (action,) = self.random.choices(self._actions, self._present_weights())
        self.world.note_allowed_start()
        place = len(self.trail)
        indent = "  " * len(self._active)
        if len(self.world.tips) > 1:
            self.tip = self.random.choice(self.world.tips)
        done = action(self)
        if done is not None:
            self.trail.insert(place, indent + done)
            self._record("action", done)
        self.world.note_allowed_start()

    def _present_weights(self) -> list[float]:
        if not self.world.deleted_topics():
            return self._weights
        pairs = zip(self._actions, self._weights, strict=True)
        return [weight if action in AFTERWARDS else 0 for action, weight in pairs]

    def check(self) -> None:
        """Raise BrokenInvariantError if an invariant does not hold."""
        if found := self._checks.broken():
            raise BrokenInvariantError("; ".join(found))

    def _finish(self) -> None:
        """Repair everything and start one manager per broker: then all work must finish."""
        self._calm = True
        self.trail.append("all is healed, managers are started again")
        self._record("action", self.trail[-1])
        self.world.heal()
        for process in self.living():
            process.effects.crashed = True
        for node_id in self.world.hosts:
            self.start(node_id)
        if self.world.deleted_topics():
            self._finish_removal()
            return
        for _ in range(2):
            self.world.clock.advance(4 * HOUR_MS)
            self._settle()
        if found := self._checks.unfinished():
            raise BrokenInvariantError("; ".join(found))

    def _finish_removal(self) -> None:
        """Check that nothing of the topic is left, except dead letters for repair."""
        for _ in range(_REMOVAL_ROUNDS):
            for _ in range(_REMOVAL_CYCLES):
                self._quiet_cycle()
            while self._weight_of(land_late) and land_late(self):
                continue  # at the last moment
            self.world.clock.advance(4 * HOUR_MS)
        records = [record for tip in self.world.tips for record in self.world.records(tip=tip)]
        if any(record.is_dead_lettered for record in records):
            return
        uploads = self.world.unfinished_uploads()
        left = [*self.world.object_names(), *uploads, *topic_policies(self.world.metadata)]
        if left:
            raise BrokenInvariantError(f"left of a deleted topic: {left}")

    def _quiet_cycle(self) -> None:
        self.world.clock.advance(30_000)
        for process in self.living():
            self.cycle(process)
            self.watch(process)
            self.world.clock.advance(ROLLOVER_MS)
            self.watch(process)
            while process.alive and process.jobs.waiting:
                self.run_job(process, 0)

    def _settle(self) -> None:
        """Run cycles until nothing changes any more."""
        for _ in range(_QUIET_CYCLES):
            before = self.world.fingerprint()
            self._quiet_cycle()
            for replica in self.world.replicas():
                replica.delete_old_files()
            self.world.note_allowed_start()
            if self.world.fingerprint() == before:
                return
        raise BrokenInvariantError(f"still changing after {_QUIET_CYCLES} quiet cycles")

    # ------------------------------------------------------------------------ what actions see

    def living(self) -> list[SimulatedProcess]:
        return [p for p in self.world.processes if p.alive and isinstance(p, SimulatedProcess)]

    def in_cycle(self, process: SimulatedProcess) -> bool:
        return (process, True) in self._active

    def is_nested(self) -> bool:
        return bool(self._active)

    def _is_in_job(self, process: Process) -> bool:
        frames = [in_cycle for each, in_cycle in self._active if each is process]
        return bool(frames) and not frames[-1]

    def cycle(self, process: SimulatedProcess) -> None:
        with self._acting(process, in_cycle=True):
            process.step()

    def watch(self, process: SimulatedProcess) -> None:
        with self._acting(process, in_cycle=False):
            try:
                process.watch.step()
            except (ProcessCrashError, TieredStorageError):
                return

    def run_job(self, process: SimulatedProcess, number: int) -> None:
        with self._acting(process, in_cycle=False):
            try:
                process.jobs.run(number)
            except ProcessCrashError:
                return

    def start(self, node_id: int) -> None:
        process = self.world.start(node_id)
        assert isinstance(process, SimulatedProcess)
        process.deleted_topics = self.world.deleted_topics
        process.effects.interrupt = lambda name, is_over: self._interrupt(
            process, name, is_over=is_over
        )
        if isinstance(process.ports.metadata, LaggingMetadata):
            process.ports.metadata.lags = self._lags
        if isinstance(process.copies, ShuffledCopies) and self._shuffles:
            process.copies.shuffle = self._shuffle

    @contextmanager
    def _acting(self, process: SimulatedProcess, *, in_cycle: bool) -> Iterator[None]:
        self._active.append((process, in_cycle))
        try:
            yield
        finally:
            self._active.pop()

    # ------------------------------------------------------------------------ interruptions

    def _lags(self) -> bool:
        return not self._calm and self.random.random() < self._lag_rate

    def _shuffle(self, segments: list[LocalSegment]) -> None:
        if not self._calm:
            self.random.shuffle(segments)

    def _interrupt(self, process: Process, name: str, *, is_over: bool) -> None:
        """Interrupt before or after an act of a process: faults, pauses, other actions."""
        if self._calm:
            return
        self._require_there(process, name, is_over=is_over)
        drawn = self.random.random()
        if drawn < self._fault_rate:
            self._fault(process, name, is_over=is_over)
        elif drawn < self._fault_rate + self._nesting_rate and len(self._active) <= _MAX_NESTED:
            self._note(f"meanwhile, {'after' if is_over else 'before'} {name}")
            for _ in range(self.random.choice(_BURSTS)):
                self._act()

    def _interrupt_upload(self) -> None:
        """Interrupt the process that has sent all of an object and not completed it."""
        if self._calm:
            return
        process, _ = self._active[-1]
        self._interrupt(process, _UPLOAD_END, is_over=False)
        if process.effects.crashed:
            raise ProcessCrashError
        drawn = self.random.random()
        if drawn < _BROKEN_UPLOADS:
            self._note(f"an upload of {name_of(process)} breaks off")
            if drawn < _BROKEN_UPLOADS / 2:
                process.effects.crash()
            raise RetriableError("broken off")

    def _note_copied(self, name: str, length_bytes: int) -> None:
        self._note(f"{length_bytes} bytes of the unfinished {name} are used again")

    def _require_there(self, process: Process, name: str, *, is_over: bool) -> None:
        if is_over:
            return
        assert isinstance(process, SimulatedProcess)
        if process.unanswered_left and name.startswith(_PUBLISH):
            process.unanswered_left -= 1
            raise UnknownResultError("no answer to this one either")
        if self.world.store_away and name.startswith(("write ", "delete .")):
            raise RetriableError("the store is away")
        if self.world.topic_away and name.startswith(_PUBLISH):
            raise UnknownResultError("the metadata topic is away")

    def _fault(self, process: Process, name: str, *, is_over: bool) -> None:
        when = f"{'after' if is_over else 'before'} {name}"
        drawn = self.random.random()
        if drawn < 0.4:
            duration_ms = self.random.choice(PAUSES_MS)
            self._note(f"{duration_ms} ms pass {when}")
            self.world.clock.advance(duration_ms)
        elif drawn < 0.8:
            self._note(f"failure {when}")
            if name.startswith(_PUBLISH):
                assert isinstance(process, SimulatedProcess)
                process.unanswered_left = self.random.choice((0, 1, 3))
                raise UnknownResultError("no answer")
            raise RetriableError("failed" if not is_over else "answer lost")
        else:
            assert isinstance(process, SimulatedProcess)
            self._note(f"{name_of(process)} dies {when}")
            process.effects.crash()

    def _note(self, what: str) -> None:
        self.trail.append("  " * len(self._active) + what)
        self._record("interruption", what)

    def _record(self, kind: str, what: str) -> None:
        if self._trace is not None:
            self._trace.add(kind, what)
