"""Supervisor: keeps child processes running, restarts them with back-off, ends them in time.

    WAITING --spawn--> RUNNING --exit--> WAITING (back-off)          while supervising
                       RUNNING --exit--> ENDED                       once stopping
    stop(): SIGTERM to all; after `kill_after_ms`, SIGKILL to the rest, and SIGQUIT a second
            before, so that they write their stacks. SIGQUIT ends a child that does not handle it;
            such a child counts as killed. After a second stop(), SIGKILL without SIGQUIT

Exit code 2 of a child means a wrong configuration. If a child's first run ends with it, the
supervisor stops the others and exits with 2 itself. After later runs, it restarts the child with
back-off, because an edit of the file must not stop the processes that still run.

`step` does what is due and returns the events; the loop waits, takes signals and logs
(rlm.app.supervisor).
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rlm.process.child import Child, ChildSpec, Spawner
from rlm.process.restart_backoff import RestartBackoff
from rsm.segment.errors import RetriableError

EXIT_KILLED = 1
EXIT_INVALID_CONFIG = 2
KILL_AFTER_MS = 15_000
_STACKS_BEFORE_KILL_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStatus:
    """Represents a child after the last `step`; `pid` is None while it is not running.

    While the child waits for its next start, `failure` is why it is not running.
    """

    spec: ChildSpec
    pid: int | None
    start_count: int
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEvent:
    """Represents an event of one process; `fields` are for the log line.

    `needs_action`: a person has to correct the configuration.
    """

    message: str
    process: str
    fields: tuple[tuple[str, int | str], ...] = ()
    needs_action: bool = False


class _Slot:
    """Represents one child: its process, or the time of its next start."""

    def __init__(self, spec: ChildSpec, backoff: RestartBackoff) -> None:
        self.spec = spec
        self.backoff = backoff
        self.child: Child | None = None
        self.started_ms = 0
        self.due_ms: int | None = None
        self.start_count = 0
        self.killed = False
        self.has_written_stacks = False
        self.failure = ""

    def status(self) -> ChildStatus:
        pid = None if self.child is None else self.child.pid
        return ChildStatus(
            spec=self.spec, pid=pid, start_count=self.start_count, failure=self.failure
        )


class Supervisor:
    """Supervises children. One thread calls `step`, `stop` and `reload`; any calls `statuses`."""

    def __init__(
        self,
        specs: Sequence[ChildSpec],
        spawner: Spawner,
        new_backoff: Callable[[], RestartBackoff],
        *,
        kill_after_ms: int = KILL_AFTER_MS,
        config_problem: Callable[[], str] = lambda: "",
    ) -> None:
        """Supervise `specs`; the first `step` starts them.

        `config_problem` returns what is wrong with the configuration now; empty if it is valid.
        """
        self._slots = tuple(_Slot(spec, new_backoff()) for spec in specs)
        self._spawner = spawner
        self._kill_after_ms = kill_after_ms
        self._config_problem = config_problem
        self._kill_at_ms: int | None = None
        self._stop_asked = False
        self._exit_code = 0
        self._statuses = tuple(slot.status() for slot in self._slots)

    @property
    def has_ended(self) -> bool:
        """Return whether the supervisor is stopping and no child is left."""
        return self.is_stopping and all(slot.child is None for slot in self._slots)

    @property
    def is_stopping(self) -> bool:
        """Return whether `stop` was called, or a child's first run ended with code 2."""
        return self._kill_at_ms is not None

    @property
    def exit_code(self) -> int:
        """Return 2 if a child's first run ended with 2, 1 if a child had to be killed, else 0."""
        return self._exit_code

    def statuses(self) -> tuple[ChildStatus, ...]:
        """Return all children as of the last `step`. Thread-safe."""
        return self._statuses

    def step(self, now_ms: int) -> tuple[ProcessEvent, ...]:
        """Detect exits, start due children, kill late children. `now_ms` is monotonic."""
        events = [event for slot in self._slots for event in self._reap(slot, now_ms)]
        if self._kill_at_ms is None:
            events += [event for slot in self._slots for event in self._start(slot, now_ms)]
        elif now_ms >= self._kill_at_ms:
            events += self._kill_all()
        elif now_ms >= self._kill_at_ms - _STACKS_BEFORE_KILL_MS:
            self._write_stacks()
        self._statuses = tuple(slot.status() for slot in self._slots)
        return tuple(events)

    def stop(self, now_ms: int) -> None:
        """Send SIGTERM to the children; after a second call, the next `step` kills them."""
        if self._stop_asked:
            self._kill_at_ms = now_ms
        self._stop_asked = True
        self._begin_stop(now_ms)

    def reload(self) -> None:
        """Send SIGHUP to the running children; a child that starts later reads the new file."""
        for slot in self._slots:
            if slot.child is not None:
                slot.child.reload()

    def _begin_stop(self, now_ms: int) -> None:
        if self.is_stopping:
            return
        self._kill_at_ms = now_ms + self._kill_after_ms
        for slot in self._slots:
            if slot.child is not None:
                slot.child.terminate()

    def _reap(self, slot: _Slot, now_ms: int) -> list[ProcessEvent]:
        code = None if slot.child is None else slot.child.exit_code()
        if code is None:
            return []
        slot.child = None
        ended = (("exit_code", code),)
        if self.is_stopping:
            if slot.has_written_stacks and code == -signal.SIGQUIT:
                self._exit_code = self._exit_code or EXIT_KILLED
            return [ProcessEvent(message="process ended", process=slot.spec.name, fields=ended)]
        if code == EXIT_INVALID_CONFIG:
            return [self._reap_misconfigured(slot, now_ms)]
        slot.failure = f"it ended with exit code {code}"
        return [self._schedule(slot, now_ms, "process ended: restarting it after a pause", ended)]

    def _reap_misconfigured(self, slot: _Slot, now_ms: int) -> ProcessEvent:
        ended = (("exit_code", EXIT_INVALID_CONFIG),)
        if slot.start_count == 1:
            self._exit_code = EXIT_INVALID_CONFIG
            self._begin_stop(now_ms)
            message = "process ended and is not restarted: its configuration is wrong"
            return ProcessEvent(message=message, process=slot.spec.name, fields=ended)
        problem = self._config_problem() or "the log shows the error"
        slot.failure = f"its configuration is wrong: {problem}"
        message = "process ended: its configuration is wrong; restarting it after a pause"
        event = self._schedule(slot, now_ms, message, (*ended, ("problem", problem)))
        return replace(event, needs_action=True)

    def _start(self, slot: _Slot, now_ms: int) -> list[ProcessEvent]:
        if slot.child is not None or (slot.due_ms is not None and now_ms < slot.due_ms):
            return []
        slot.started_ms = now_ms
        slot.start_count += 1
        try:
            slot.child = self._spawner.spawn(slot.spec)
        except RetriableError as error:
            slot.failure = str(error)
            reason = (("reason", slot.failure),)
            message = "cannot start process: trying again after a pause"
            return [self._schedule(slot, now_ms, message, reason)]
        slot.failure = ""
        pid = (("pid", slot.child.pid),)
        return [ProcessEvent(message="process started", process=slot.spec.name, fields=pid)]

    def _schedule(
        self, slot: _Slot, now_ms: int, message: str, fields: tuple[tuple[str, int | str], ...]
    ) -> ProcessEvent:
        pause_ms = slot.backoff.next_pause_ms(now_ms - slot.started_ms)
        slot.due_ms = now_ms + pause_ms
        return ProcessEvent(
            message=message, process=slot.spec.name, fields=(*fields, ("restart_in_ms", pause_ms))
        )

    def _write_stacks(self) -> None:
        for slot in self._slots:
            if slot.child is not None and not slot.has_written_stacks:
                slot.child.write_stacks()
                slot.has_written_stacks = True

    def _kill_all(self) -> list[ProcessEvent]:
        events = []
        for slot in self._slots:
            if slot.child is not None and not slot.killed:
                slot.child.kill()
                slot.killed = True
                self._exit_code = self._exit_code or EXIT_KILLED
                events.append(ProcessEvent(message="process killed", process=slot.spec.name))
        return events
