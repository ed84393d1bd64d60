"""Starts streams again that Spark ended because one of its Python processes connected too late.

Spark waits 10 s for such a process, whatever is configured, and on a loaded machine it can take
longer. An operator starts the stream again, and it continues at its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

_CONNECTED_LATE = "Python worker failed to connect back"
_STARTS = 3


def finished_stream(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Start a stream and wait for its end. Raises StreamingQueryException for other failures."""
    for _ in range(_STARTS - 1):
        query = start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if _CONNECTED_LATE not in str(error):
                raise
        else:
            return query
    query = start()
    query.awaitTermination()
    return query
