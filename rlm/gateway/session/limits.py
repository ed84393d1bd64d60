"""What one client's connection may take of the gateway's memory and time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Memory of a session: `gathered_request_bytes` + `gathered_answer_bytes` and small change.

    `request_bytes` bounds any request (the broker's `socket.request.max.bytes`), the gathered ones
    bound those messages that must be whole to be changed. Behind `pipelined_count` requests without
    an answer no more are read. `remote_wait_ms` bounds how long one fetch waits for the store,
    `fetch_max_bytes` how much it gets (the broker's `fetch.max.bytes`) but for its first batch.
    `cached_response_max_age_ms`: for how long what the broker said of one fetch counts for others,
    where clients don't log in; 0 for none. `logged_in_cached_response_max_age_ms`: the same where
    they do.
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
            raise ValueError(f"not limits of a session: {self}")
        if min(self.pipelined_count, self.fetch_max_bytes) <= 0:
            raise ValueError(f"not limits of a session: {self}")
        if min(self.remote_wait_ms, self.log_ends_age_ms) < 0:
            raise ValueError(f"not limits of a session: {self}")
        if min(self.cached_response_max_age_ms, self.logged_in_cached_response_max_age_ms) < 0:
            raise ValueError(f"not limits of a session: {self}")
