"""Generates docs/http.md: `python -m rlm.app.http_reference > docs/http.md`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from rlm.rest.manager_api import MANAGER_ENDPOINTS
from rlm.rest.refusals import RequestRefusal, refusal_text
from rlm.rest.signed_api import OPEN_PATHS
from rlm.rest.signing import REFUSAL_HEADER
from rlm.rest.supervisor_api import SUPERVISOR_ENDPOINTS
from rlm.rest.worker_api import WORKER_ENDPOINTS, ApiEndpoint

_HEAD = """# HTTP API

Every manager and gateway serves HTTP, and so does the supervisor if you set `metrics.listener`.
Requests change no state, with two exceptions. `POST /v1/cycle` starts a manager's next cycle at
once, and `POST /v1/streamed-deletion` requests the deletion of streamed segments. `rlm` commands
use these endpoints. [JSON](json.md) describes the bodies. `make docs` writes this page.

A response with status 400 or 503 has the body `{"error": "<text>"}`, except for `/readyz`. An
unknown path gets 404, an unsupported method gets 405. HEAD works wherever GET does.

"""
_SIGNED = "signed requests only"
_MANAGER = """## Manager

The manager listens at `rest.listener`. If that key is not set, it listens at a free port of the
address from which the host connects to its broker. It registers the address, and `rlm processes`
shows it. It uses HTTPS if `rest.ssl.keystore.location` is set. [Security](operations.md#security)
explains signatures.
"""
_REFUSALS = f"""If the manager refuses a request, the response has a body with `error`. The header
`{REFUSAL_HEADER}` contains the reason:

| reason | status | meaning |
|---|---|---|
"""
_SUPERVISOR = """## Supervisor

`rlm run` listens at `metrics.listener` if you set that key. Requests need no credential.
"""
_WORKER = """## Gateway, and the manager for its supervisor

Each process listens at a free port of 127.0.0.1, for the supervisor. The gateway of `rlm gateway`
has no supervisor: it listens at `rest.listener` if you set that key. Requests need no credential.
"""


def render() -> str:
    """Return the whole page."""
    refusals = (
        f"| {refusal_text(each.value).reason.replace(':', ' |' + f' {each.status} |', 1)} |"
        for each in RequestRefusal
    )
    return (
        "\n".join(
            (
                _HEAD.rstrip() + "\n",
                _MANAGER,
                _table(MANAGER_ENDPOINTS, lambda path: OPEN_PATHS.get(path, _SIGNED)),
                _REFUSALS + "\n".join(refusals) + "\n",
                _SUPERVISOR,
                _table(SUPERVISOR_ENDPOINTS, lambda _: "anyone"),
                _WORKER,
                _table(WORKER_ENDPOINTS, lambda _: "anyone"),
            )
        ).rstrip()
        + "\n"
    )


def _table(endpoints: Sequence[ApiEndpoint], caller_of: Callable[[str], str]) -> str:
    head = (
        "| request | meaning | query | status | body | caller |",
        "|---|---|---|---|---|---|",
    )
    return "\n".join((*head, *_rows(endpoints, caller_of))) + "\n"


def _rows(endpoints: Sequence[ApiEndpoint], caller_of: Callable[[str], str]) -> Iterator[str]:
    for each in endpoints:
        cells = (
            f"`{each.method} {each.path}`",
            each.meaning,
            "<br>".join(f"`{name}`: {meaning}" for name, meaning in each.parameters.items()),
            "<br>".join(f"{status}: {meaning}" for status, meaning in each.statuses.items()),
            _body(each),
            caller_of(each.path),
        )
        yield f"| {' | '.join(cells)} |"


def _body(endpoint: ApiEndpoint) -> str:
    if endpoint.body is None:
        return ""
    link = f"[{endpoint.body.name}](json.md#{endpoint.body.name.lower()})"
    return f"list of {link}" if endpoint.is_list else link


if __name__ == "__main__":
    sys.stdout.write(render())
