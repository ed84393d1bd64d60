"""Probe a child over HTTP for the supervisor: its metrics, and whether it is ready."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
from prometheus_client.core import Metric

from rlm.rest.exposition import parse
from rsm.segment.errors import CorruptError, RetriableError

_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReadiness:
    """Represents why a child is not ready, empty if it is; and its warnings in any case."""

    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class ChildProbe:
    """Probes children. Thread-safe; every call ends within its timeouts."""

    def __init__(self) -> None:
        # A proxy of the environment is not for processes of this host.
        self._client = httpx.Client(timeout=_TIMEOUT_S, trust_env=False)

    def metrics(self, address: str) -> tuple[Metric, ...]:
        """Fetch a child's metrics; RetriableError without a response, CorruptError if malformed."""
        response = self._get(address, "/metrics")
        try:
            return parse(response.text)
        except ValueError as error:
            raise CorruptError("malformed metrics", address=address) from error

    def readiness(self, address: str) -> ChildReadiness:
        """Fetch whether a child is ready; RetriableError if it does not answer."""
        response = self._get(address, "/readyz")
        is_ready = response.status_code == httpx.codes.OK
        reasons = () if is_ready else _texts(response, "reasons")
        if not is_ready and not reasons:
            reasons = (f"HTTP status {response.status_code}",)
        return ChildReadiness(reasons=reasons, warnings=_texts(response, "warnings"))

    def close(self) -> None:
        """Release connections."""
        self._client.close()

    def _get(self, address: str, path: str) -> httpx.Response:
        try:
            return self._client.get(f"http://{address}{path}")
        except httpx.HTTPError as error:
            raise RetriableError("process does not answer", address=address) from error


def _texts(response: httpx.Response, name: str) -> tuple[str, ...]:
    """Return a list of strings from a response; empty if it is missing."""
    try:
        return tuple(map(str, response.json()[name]))
    except (ValueError, KeyError, TypeError):
        return ()
