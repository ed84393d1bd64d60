"""Limits the memory and time of one client's connection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """The limits of a session. Memory: about `gathered_request_bytes` + `gathered_answer_bytes`.

    `request_bytes` limits any request, as the broker's `socket.request.max.bytes`. The gathered
    limits apply to messages that must be buffered whole. With `pipelined_count` requests in
    flight, the session reads no more. `remote_wait_ms` limits a fetch's wait for the store.
    `fetch_max_bytes` limits its size except for its first batch, as the broker's
    `fetch.max.bytes`. `log_ends_age_ms`: how long a broker's answer about log ends is used.
    `cached_response_max_age_ms`: the same for the out-of-range cache on listeners without SASL; 0
    disables the cache. `logged_in_cached_response_max_age_ms`: the same with SASL.
    """

    request_bytes: int = 104_857_600
    gathered_request_bytes: int = 1 << 20
    gathered_answer_bytes: int = 104_857_600
    fetch_max_bytes: int = 57_671_680
    pipelined_count: int = 1_000
    remote_wait_ms: int = 500
    log_ends_age_ms: int = 1_000
    cached_response_max_age_ms: int = 100
    logged_in_cached_response_max_age_ms: int = 0

    def __post_init__(self) -> None:
        if min(self.request_bytes, self.gathered_request_bytes, self.gathered_answer_bytes) <= 0:
            raise ValueError(f"invalid session limits: {self}")
        if min(self.pipelined_count, self.fetch_max_bytes) <= 0:
            raise ValueError(f"invalid session limits: {self}")
        if min(self.remote_wait_ms, self.log_ends_age_ms) < 0:
            raise ValueError(f"invalid session limits: {self}")
        if min(self.cached_response_max_age_ms, self.logged_in_cached_response_max_age_ms) < 0:
            raise ValueError(f"invalid session limits: {self}")
