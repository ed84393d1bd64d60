"""Chooses the thread pool of a rewrite."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from rlm.gateway.model.actions import RewriteExchange


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePools:
    """The pools for rewrites: `store` for those that may wait for the store, else `others`.

    A store that does not answer leaves the threads of `others` free. To avoid deadlock, work that
    rewrites wait for must not run in these pools.
    """

    store: Executor
    others: Executor

    def of(self, wanted: RewriteExchange) -> Executor:
        """Return the pool for a rewrite."""
        waits = wanted.rewrite.waits_for_store(wanted.exchange.request)
        return self.store if waits else self.others
