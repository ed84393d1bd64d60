"""Finds by trial the largest number of concurrent copies that raises the total rate. Pure.

Copies that wait for a distant store hardly slow each other, and more of them copy more bytes. If
copies share a scarce resource (disk, network, store, this process's one interpreter), more of them
do not copy more bytes in total. They use more memory, and each takes longer. The store's latency
decides which case applies, and it varies. So the limit doubles at first, then changes by one at a
time. The total rate decides: one more copy is kept if it adds at least half of its share. An error
of the store halves the limit. Source: additive increase, multiplicative decrease (RFC 5681), with
the rate as a signal in addition to loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_FIRST_LIMIT = 4
_LEAST_SHARE = 0.5
_QUIET_WINDOWS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyWindow:
    """Represents the copies of one window of time.

    `is_saturated`: at its start and end all slots were taken and more copies waited. `is_refused`:
    the store failed an attempt.
    """

    moved_bytes: int
    elapsed_ms: int
    is_saturated: bool
    is_refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyConcurrency:
    """Represents the present limit of concurrent copies and the running trial.

    `before` and `rate_before` (bytes per ms) are the last limit and rate that were kept; None if no
    comparison runs. `quiet_windows` is the number of windows until the next trial. `is_doubling`
    ends when a limit was too high, the store failed, or `most` is reached. `is_rising`: the next
    trial raises the limit.
    """

    limit: int
    most: int
    before: int | None = None
    rate_before: float | None = None
    quiet_windows: int = 0
    is_doubling: bool = True
    is_rising: bool = True

    @classmethod
    def beginning(cls, most: int) -> CopyConcurrency:
        """Return a low limit: too many copies slow each other, too few cost only a few windows."""
        return cls(limit=min(_FIRST_LIMIT, most), most=most)


def adjusted(now: CopyConcurrency, seen: CopyWindow) -> CopyConcurrency:
    """Return the next state after a window with the present limit."""
    if seen.is_refused:
        return CopyConcurrency(
            limit=max(1, now.limit // 2),
            most=now.most,
            is_doubling=False,
            quiet_windows=_QUIET_WINDOWS,
        )
    if not seen.is_saturated:
        return replace(now, before=None, rate_before=None)
    if not seen.moved_bytes:  # All copies hang, and other copies must not wait for them.
        return replace(now, limit=min(now.limit + 1, now.most), before=None, rate_before=None)
    rate = seen.moved_bytes / max(seen.elapsed_ms, 1)
    if now.before is None or now.rate_before is None or now.before == now.limit:
        return _tried(now, rate)
    share = now.rate_before / now.before
    gain = (rate - now.rate_before) / share
    added = now.limit - now.before
    if gain >= _LEAST_SHARE * added:
        return _tried(replace(now, is_rising=added > 0), rate)
    return replace(
        now,
        limit=now.before,
        before=None,
        rate_before=None,
        quiet_windows=_QUIET_WINDOWS,
        is_doubling=False,
        is_rising=added < 0,
    )


def _tried(now: CopyConcurrency, rate: float) -> CopyConcurrency:
    """Keep the present limit with its rate, and try another one unless trials are paused."""
    kept = replace(now, before=now.limit, rate_before=rate)
    if now.quiet_windows:
        return replace(kept, quiet_windows=now.quiet_windows - 1)
    step = now.limit if now.is_doubling else 1
    wanted = now.limit + step if now.is_rising else now.limit - 1
    limit = max(1, min(wanted, now.most))
    if limit == now.limit:  # A bound is reached, so the next trial changes direction.
        return replace(
            kept, is_rising=not now.is_rising, is_doubling=False, quiet_windows=_QUIET_WINDOWS
        )
    return replace(kept, limit=limit)
