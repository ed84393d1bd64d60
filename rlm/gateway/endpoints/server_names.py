"""Brokers by the server names that clients ask for in TLS handshakes (SNI, RFC 6066). Pure."""

from __future__ import annotations

import re

_NODE = "{node}"
_LAST_NODE_ID = 2**31 - 1


class ServerNames:
    """`template` holds `{node}` once, as `broker-{node}.kafka.example.com`."""

    def __init__(self, template: str) -> None:
        self._before, self._after = template.split(_NODE)
        number = "(0|[1-9][0-9]{0,9})"
        self._pattern = re.compile(
            re.escape(self._before) + number + re.escape(self._after), re.IGNORECASE
        )

    def name_of(self, node_id: int) -> str:
        """The name that leads to a broker."""
        return f"{self._before}{node_id}{self._after}"

    def node_of(self, server_name: str) -> int | None:
        """The broker that a name leads to; None: it is no broker's name. Case doesn't matter."""
        match = self._pattern.fullmatch(server_name)
        node_id = None if match is None else int(match[1])
        return None if node_id is None or node_id > _LAST_NODE_ID else node_id
