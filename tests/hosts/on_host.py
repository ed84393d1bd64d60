"""Calls one function in this process, for `VirtualHost.call`.

    python -m tests.hosts.on_host MODULE:FUNCTION ARGUMENTS

ARGUMENTS is a JSON object. The last line printed is the result as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys


def main(name: str, arguments: str) -> None:
    """Call the function and print its result."""
    module, _, function = name.partition(":")
    result = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    sys.stdout.write("\n" + json.dumps(result) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
