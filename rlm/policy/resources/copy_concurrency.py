"""How many copies run at once, found out by trying: as many as still bring something.

Copies that wait for a distant store hardly disturb each other, and more of them move more bytes.
Where they share what is scarce, be it the disk, the network, the store or this process' one
interpreter, more of them move the same, hold more memory, and take longer each. Which it is changes
with the store's latency. So one is added or taken away at a time, and what the rate of all together
does decides: a copy at once is worth it if it brings at least half of its share. A store that
refuses has the number halved. Source: additive increase, multiplicative decrease (RFC 5681), with
the rate as the signal besides loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_FIRST_LIMIT = 4
_LEAST_SHARE = 0.5
_QUIET_WINDOWS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyWindow:
    """What was seen in a stretch of time.

    `is_saturated`: all places were taken, and more waited, at its begin and at its end. `refused`:
    the store failed an attempt.
    """

    moved_bytes: int
    elapsed_ms: int
    is_saturated: bool
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyConcurrency:
    """How many at once now, and what is being tried.

    `before` and `rate_before` (bytes per ms) are the last number and rate that were kept, None
    while there is nothing to compare with; `quiet_windows`: how long nothing new is tried;
    `doubling` until the first number that was too high; `goes_up`: the next attempt is one more.
    """

    limit: int
    most: int
    before: int | None = None
    rate_before: float | None = None
    quiet_windows: int = 0
    doubling: bool = True
    goes_up: bool = True

    @classmethod
    def beginning(cls, most: int) -> CopyConcurrency:
        """Begins low: too many at once cost everybody, too few only a few windows."""
        return cls(limit=min(_FIRST_LIMIT, most), most=most)


def adjusted(now: CopyConcurrency, seen: CopyWindow) -> CopyConcurrency:
    """The next number, after a window with the present one."""
    if seen.refused:
        return CopyConcurrency(
            limit=max(1, now.limit // 2),
            most=now.most,
            doubling=False,
            quiet_windows=_QUIET_WINDOWS,
        )
    if not seen.is_saturated:
        return replace(now, before=None, rate_before=None)
    if not seen.moved_bytes:  # all hang: others must not wait for them
        return replace(now, limit=min(now.limit + 1, now.most), before=None, rate_before=None)
    rate = seen.moved_bytes / max(seen.elapsed_ms, 1)
    if now.before is None or now.rate_before is None or now.before == now.limit:
        return _tried(now, rate)
    share = now.rate_before / now.before
    gain = (rate - now.rate_before) / share
    added = now.limit - now.before
    if gain >= _LEAST_SHARE * added:
        return _tried(replace(now, goes_up=added > 0), rate)
    return replace(
        now,
        limit=now.before,
        before=None,
        rate_before=None,
        quiet_windows=_QUIET_WINDOWS,
        doubling=False,
        goes_up=added < 0,
    )


def _tried(now: CopyConcurrency, rate: float) -> CopyConcurrency:
    """Keep the present number with its rate, and try another one, if it is time for that."""
    kept = replace(now, before=now.limit, rate_before=rate)
    if now.quiet_windows:
        return replace(kept, quiet_windows=now.quiet_windows - 1)
    step = now.limit if now.doubling else 1
    wanted = now.limit + step if now.goes_up else now.limit - 1
    limit = max(1, min(wanted, now.most))
    if limit == now.limit:  # at an end: the other way next
        return replace(kept, goes_up=not now.goes_up, doubling=False, quiet_windows=_QUIET_WINDOWS)
    return replace(kept, limit=limit)
