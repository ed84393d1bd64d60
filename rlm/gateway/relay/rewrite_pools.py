"""Chooses the thread pool of a rewrite."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from rlm.gateway.model.actions import RewriteExchange


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePools:
    """Represents the thread pools of rewrites.

    Rewrites that may wait for the store run in `store`, all others in `others`. While the store
    does not respond, the threads of `others` remain available. Work that rewrites wait for must not
    run in these pools, because that could cause a deadlock.
    """

    store: Executor
    others: Executor

    def of(self, wanted: RewriteExchange) -> Executor:
        """Return the pool for a rewrite of this exchange."""
        waits = wanted.rewrite.waits_for_store(wanted.exchange.request)
        return self.store if waits else self.others
