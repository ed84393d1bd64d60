"""The threads in which rewrites wait."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from rlm.gateway.model.actions import RewriteExchange


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePools:
    """`store` runs those that may wait for the store, for as long as a client has patience.

    Whatever becomes of the store, those in `others` find a thread. What either waits for must not
    run here.
    """

    store: Executor
    others: Executor

    def of(self, wanted: RewriteExchange) -> Executor:
        """Where a rewrite is to run."""
        waits = wanted.rewrite.waits_for_store(wanted.exchange.request)
        return self.store if waits else self.others
