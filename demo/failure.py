"""Why a demo ends with exit code 1."""

from __future__ import annotations


class DemoFailedError(Exception):
    """Something is not as it has to be; the message is a plain reason for the user."""
