"""The acts of one process on external systems: observed, made to fail, and ended by a crash.

An effect changes something outside: a publish, an object written or deleted, DeleteRecords, or a
dead letter. Effects are numbered from 0; questions, which change nothing, have no number. A witness
checks every effect before it happens. After a crash no act reaches the outside. A recorder, if
there is one, gets every act with its outcome.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

_ResultT = TypeVar("_ResultT")

Hook = Callable[[], None]
_INTERRUPTED_QUESTIONS = frozenset({"leadership", "offsets"})


class ProcessCrashError(BaseException):
    """The process has crashed. No loop may survive it, so it is no Exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Before or after an effect, by its number."""

    number: int
    after: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """An effect or a question as it ended: with an answer, or with an error.

    An effect with a lost answer is recorded twice: first it happened, then it failed.
    """

    name: str
    subject: object
    answer: object = None
    error: BaseException | None = None


class Effects:
    """The acts of one process. `performed` are the names of its effects so far, in order.

    `interrupt` is called before and after each effect, and before questions to the broker, with the
    act's name and whether the act is over; its errors become the act's errors. `recorder` gets each
    act when it ends; None records nothing.
    """

    def __init__(self, witness: Callable[[str, object], None]) -> None:
        self._witness = witness
        self._hooks: dict[tuple[str, str], list[Hook]] = defaultdict(list)
        self._refused: dict[tuple[str, str], Exception] = {}
        self.performed: list[str] = []
        self._moments: dict[Moment, Hook] = {}
        self.crashed = False
        self.interrupt: Callable[[str, bool], None] | None = None
        self.recorder: Callable[[Act], None] | None = None

    def at(self, moment: Moment, hook: Hook) -> None:
        """Call `hook` at a moment of the process's life."""
        self._moments[moment] = hook

    def before(self, name: str, hook: Hook) -> None:
        """Call `hook` once, before the next act of this name; the act raises the hook's error."""
        self._hooks["before", name].append(hook)

    def after(self, name: str, hook: Hook) -> None:
        """Call `hook` once, after the next act of this name has happened."""
        self._hooks["after", name].append(hook)

    def fail(self, name: str, error: Exception, *, times: int = 1) -> None:
        """Let the next acts of this name fail without having happened."""
        for _ in range(times):
            self.before(name, lambda: _raise(error))

    def lose_answer(self, name: str, error: Exception) -> None:
        """Let the next act of this name happen, but raise an error as if it had failed."""
        self.after(name, lambda: _raise(error))

    def refuse(self, name: str, subject: str, error: Exception) -> None:
        """Let every act of this name on `subject` fail from now on."""
        self._refused[name, subject] = error

    def perform(self, name: str, subject: object, act: Callable[[], _ResultT]) -> _ResultT:
        """Carry out an effect on `subject`."""
        try:
            return self._perform(name, subject, act)
        except BaseException as error:
            self._record_failure(name, subject, error)
            raise

    def _perform(self, name: str, subject: object, act: Callable[[], _ResultT]) -> _ResultT:
        self._require_alive()
        self._run_hooks("before", name)
        if isinstance(subject, str) and (name, subject) in self._refused:
            raise self._refused[name, subject]
        self._interrupt(name, is_over=False)
        number = len(self.performed)
        self._pass(Moment(number=number, after=False))
        self._witness(name, subject)
        self.performed.append(name)
        try:
            result = act()
        finally:
            self._pass(Moment(number=number, after=True))
        self._record(name, subject, result)
        self._interrupt(name, is_over=True)
        self._run_hooks("after", name)
        return result

    def ask(self, name: str, question: Callable[[], _ResultT]) -> _ResultT:
        """Ask a question, which changes nothing."""
        try:
            return self._ask(name, question)
        except BaseException as error:
            self._record_failure(name, None, error)
            raise

    def _ask(self, name: str, question: Callable[[], _ResultT]) -> _ResultT:
        self._require_alive()
        self._run_hooks("before", name)
        if name in _INTERRUPTED_QUESTIONS:
            self._interrupt(name, is_over=False)
        answer = question()
        self._record(name, None, answer)
        self._witness(name, None)
        self._run_hooks("after", name)
        return answer

    def report(self, name: str, subject: object) -> None:
        """Let the witness check what happens at this moment, within an effect."""
        self._record(name, subject, None)
        self._witness(name, subject)

    def crash(self) -> None:
        """End the process here."""
        self.crashed = True
        raise ProcessCrashError

    def _record(self, name: str, subject: object, answer: object) -> None:
        if self.recorder is not None:
            self.recorder(Act(name=name, subject=subject, answer=answer))

    def _record_failure(self, name: str, subject: object, error: BaseException) -> None:
        if self.recorder is not None:
            self.recorder(Act(name=name, subject=subject, error=error))

    def _run_hooks(self, moment: str, name: str) -> None:
        if waiting := self._hooks[moment, name]:
            waiting.pop(0)()
            self._require_alive()

    def _pass(self, moment: Moment) -> None:
        if moment in self._moments:
            self._moments.pop(moment)()
            self._require_alive()

    def _interrupt(self, name: str, *, is_over: bool) -> None:
        if self.interrupt is not None:
            self.interrupt(name, is_over)
            self._require_alive()

    def _require_alive(self) -> None:
        if self.crashed:
            raise ProcessCrashError


def _raise(error: Exception) -> None:
    raise error
