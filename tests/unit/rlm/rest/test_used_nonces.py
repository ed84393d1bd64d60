from __future__ import annotations

from rlm.rest.used_nonces import NonceUse, UsedNonces


class _Clock:
    now_ms = 1_000


def _nonces(clock: _Clock, *, max_count: int = 2) -> UsedNonces:
    return UsedNonces(window_ms=100, max_count=max_count, now_ms=lambda: clock.now_ms)


def test_nonce_when_used_again_anywhere_in_its_window_then_replayed() -> None:
    """A nonce from ahead of the clock stays in the window for twice as long."""
    clock = _Clock()
    nonces = _nonces(clock)
    assert nonces.use(b"a", 1_100) is NonceUse.FRESH
    clock.now_ms = 1_200

    assert nonces.use(b"a", 1_100) is NonceUse.REPLAYED
    clock.now_ms = 1_201
    assert nonces.use(b"a", 1_100) is NonceUse.OUTSIDE_WINDOW


def test_nonces_when_as_many_as_allowed_are_in_use_then_no_request_is_taken() -> None:
    clock = _Clock()
    nonces = _nonces(clock)
    uses = [nonces.use(bytes([n]), 1_000) for n in range(3)]
    clock.now_ms = 1_101

    assert uses == [NonceUse.FRESH, NonceUse.FRESH, NonceUse.FULL]
    assert nonces.use(b"d", 1_101) is NonceUse.FRESH
