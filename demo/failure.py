"""Defines the error that ends a demo with exit code 1."""

from __future__ import annotations


class DemoFailedError(Exception):
    """A check or a service failed; the message is the reason for the user."""
