"""What the supervisor asks a child over HTTP: its metrics, and whether it is ready."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
from prometheus_client.core import Metric

from rlm.rest.exposition import parse
from rsm.segment.errors import CorruptError, RetriableError

_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReadiness:
    """Why a child is not ready, empty if it is; and what a person should look at in any case."""

    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class ChildProbe:
    """Asks children; thread-safe. Every call ends within its timeouts."""

    def __init__(self) -> None:
        # A proxy of the environment is for the outside world, not for this host's processes.
        self._client = httpx.Client(timeout=_TIMEOUT_S, trust_env=False)

    def metrics(self, address: str) -> tuple[Metric, ...]:
        """A child's metrics; RetriableError if it doesn't answer, CorruptError if not with them."""
        response = self._get(address, "/metrics")
        try:
            return parse(response.text)
        except ValueError as error:
            raise CorruptError("malformed metrics", address=address) from error

    def readiness(self, address: str) -> ChildReadiness:
        """Whether a child is ready; RetriableError if it doesn't answer."""
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
    """A list of an answer; empty if it is not there."""
    try:
        return tuple(map(str, response.json()[name]))
    except (ValueError, KeyError, TypeError):
        return ()
