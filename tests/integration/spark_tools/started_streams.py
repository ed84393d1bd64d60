"""Restarts streams that Spark ended because one of its Python processes connected too late.

Spark waits 10 s for such a process, whatever is configured, and on a loaded machine it can take
longer. An operator starts the stream again, and it continues at its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

_CONNECTED_LATE = "Python worker failed to connect back"
_STARTS = 3

T = TypeVar("T")


def until_connected(run: Callable[[], T]) -> T:
    """Call `run`, which starts a stream and waits for its end; repeat if Spark gave up like that.

    Raises StreamingQueryException for other failures.
    """
    starts = 1
    while True:
        try:
            return run()
        except StreamingQueryException as error:
            if starts == _STARTS or _CONNECTED_LATE not in str(error):
                raise
        starts += 1


def finished_stream(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Start a stream and wait for its end, as `until_connected` does."""

    def run() -> StreamingQuery:
        query = start()
        query.awaitTermination()
        return query

    return until_connected(run)
