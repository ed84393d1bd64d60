"""The configuration that the README gives a new operator, as each host has it.

Every test of several hosts starts from the README's own text, so a wrong text fails the tests. The
README shows the file of broker1's host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rsm.config.properties import parse_properties

_CHECKOUT = Path(__file__).resolve().parents[2]
_FIRST_LINE = re.compile(r"^    # rlm\.properties\b", re.MULTILINE)
_SHARED_KEY = "bootstrap.servers"  # the same on every host

# Short times only: addresses and paths come from the README.
SHORT_TIMES = {
    "process.restart.backoff.ms": "50",
    "remote.log.manager.task.interval.ms": "500",
    "remote.topic.deletion.grace.ms": "2000",
}


def readme_example() -> str:
    """Return the README's rlm.properties, unchanged."""
    text = (_CHECKOUT / "README.md").read_text()
    (begin,) = [found.start() for found in _FIRST_LINE.finditer(text)]
    lines = text[begin:].splitlines()
    indented = lines[: next(n for n, line in enumerate(lines) if not line.startswith("    "))]
    return "".join(f"{line.removeprefix('    ')}\n" for line in indented)


def host_configuration(dns_name: str, settings: Mapping[str, str | None]) -> str:
    """Return the file of this broker's host with `settings`; None removes a key of the README."""
    example = readme_example().splitlines()
    lines = [_of_host(line, dns_name) for line in example]
    kept = [line for line in lines if _key(line) not in settings]
    added = [f"{key}={value}" for key, value in settings.items() if value is not None]
    return "\n".join((*kept, *added)) + "\n"


def setting(text: str, key: str) -> str:
    """Return a key's value in a configuration's text. Raises KeyError if the text has none."""
    return parse_properties(text, source="rlm.properties").entries[key].value


def _of_host(line: str, dns_name: str) -> str:
    return line if _key(line) == _SHARED_KEY else line.replace("broker1", dns_name)


def _key(line: str) -> str:
    return line.partition("=")[0].strip()
