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
        return self._rows(address, "partitions", params)

    def retention(self, address: str, topic: str) -> Sequence[Mapping[str, object]]:
        """What retention would do now to each partition of a topic that it leads; as above."""
        return self._rows(address, "retention", {"topic": topic})

    def explanation(
        self, address: str, topic: str, partition: int, offset: int
    ) -> Mapping[str, object]:
        """Where a record is, by the manager beside the partition's leader; raises as above.

        RetriableError also if it does not lead the partition.
        """
        params = {"topic": topic, "partition": str(partition), "offset": str(offset)}
        found = self._json(address, "explanation", params)
        if not isinstance(found, dict):
            raise CorruptError("malformed answer of a manager", address=address)
        return found

    def run_cycle(self, address: str) -> None:
        """Have it look at its partitions at once. RetriableError."""
        self._request(address, "POST", "cycle", {})

    def _rows(
        self, address: str, what: str, params: Mapping[str, str]
    ) -> Sequence[Mapping[str, object]]:
        rows = self._json(address, what, params)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise CorruptError("malformed answer of a manager", address=address)
        return rows

    def _json(self, address: str, what: str, params: Mapping[str, str]) -> object:
        response = self._request(address, "GET", what, params)
        try:
            found: object = response.json()
        except ValueError as error:
            raise CorruptError("malformed answer of a manager", address=address) from error
        return found

    def _request(
        self, address: str, method: str, what: str, params: Mapping[str, str]
    ) -> httpx.Response:
        try:
            response = self._client.request(method, f"http://{address}/v1/{what}", params=params)
            response.raise_for_status()
        except httpx.HTTPStatusError as error:
            # The library's own text ends with a link to a page about HTTP.
            raise RetriableError(
                "the manager refused the request",
                address=address,
                request=f"{method} /v1/{what}",
                http_status=error.response.status_code,
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RetriableError(
                "manager does not answer", address=address, reason=error
            ) from error
        return response

    def close(self) -> None:
        """Release connections."""
        self._client.close()
