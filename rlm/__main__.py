"""Run `rlm` as a module: the supervisor starts its children with its own interpreter."""

from __future__ import annotations

from rlm.cli.main import main

if __name__ == "__main__":
    main()
