"""An executor without threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

_ParametersT = ParamSpec("_ParametersT")
_ResultT = TypeVar("_ResultT")


class SynchronousExecutor(Executor):
    """Runs each job when it is submitted, and raises the job's errors there: a crash must do so."""

    def submit(
        self,
        fn: Callable[_ParametersT, _ResultT],
        /,
        *args: _ParametersT.args,
        **kwargs: _ParametersT.kwargs,
    ) -> Future[_ResultT]:
        future: Future[_ResultT] = Future()
        future.set_result(fn(*args, **kwargs))
        return future
