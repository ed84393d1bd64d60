"""Writes docs/performance.md: `python -m bench.report`."""

from __future__ import annotations

import sys

from bench.report.page import PAGE, TEMPLATE, page_of
from bench.result_file import COMMITTED, read_results


def main() -> int:
    """Write the page from the committed results; return the exit code."""
    try:
        page = page_of(TEMPLATE.read_text(), read_results(COMMITTED), PAGE.read_text())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
