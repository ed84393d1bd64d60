"""Asks managers over HTTP what they say of their partitions. See rlm.rest.manager_api."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import httpx

from rsm.segment.errors import CorruptError, RetriableError

_TIMEOUT_S = 2.0


class ManagerClient:
    """Thread-safe. Every call ends within its timeouts."""

    def __init__(self) -> None:
        # Managers stand beside the brokers, not behind a proxy of the environment.
        self._client = httpx.Client(timeout=_TIMEOUT_S, trust_env=False)

    def partitions(
        self, address: str, *, topic: str | None = None
    ) -> Sequence[Mapping[str, object]]:
        """What the manager at host:port says of the partitions it hosts, of all topics if None.

        Raises RetriableError if it doesn't answer, CorruptError if what answers is no manager.
        """
        params = {} if topic is None else {"topic": topic}
        try:
            response = self._client.get(f"http://{address}/v1/partitions", params=params)
            response.raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RetriableError(
                "manager does not answer", address=address, reason=error
            ) from error
        try:
            rows = response.json()
        except ValueError as error:
            raise CorruptError("malformed answer of a manager", address=address) from error
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise CorruptError("malformed answer of a manager", address=address)
        return rows

    def close(self) -> None:
        """Release connections."""
        self._client.close()
