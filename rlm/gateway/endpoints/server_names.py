"""Maps node ids to the server names of TLS handshakes and back (SNI, RFC 6066). Pure."""

from __future__ import annotations

import re

_NODE = "{node}"
_LAST_NODE_ID = 2**31 - 1


class ServerNames:
    """The server names of brokers.

    `template` contains `{node}` once, for example `broker-{node}.kafka.example.com`.
    """

    def __init__(self, template: str) -> None:
        self._before, self._after = template.split(_NODE)
        number = "(0|[1-9][0-9]{0,9})"
        self._pattern = re.compile(
            re.escape(self._before) + number + re.escape(self._after), re.IGNORECASE
        )

    def name_of(self, node_id: int) -> str:
        """Return the server name of a broker."""
        return f"{self._before}{node_id}{self._after}"

    def node_of(self, server_name: str) -> int | None:
        """Return the broker of a server name, ignoring case; None if the name is no broker's."""
        match = self._pattern.fullmatch(server_name)
        node_id = None if match is None else int(match[1])
        return None if node_id is None or node_id > _LAST_NODE_ID else node_id
