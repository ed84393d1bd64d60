"""Checks the types of a plug-in's results. Raises TypeError, which rsm.plugins.calls maps."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def require_type(found: T, expected: type[object]) -> T:
    """Return `found`. TypeError if it is not of that type: annotations prove nothing."""
    if not isinstance(found, expected):
        raise TypeError(f"{type(found).__name__} instead of {expected.__name__}")
    return found


def require_types(found: tuple[T, ...], expected: type[object]) -> tuple[T, ...]:
    """Return `found`. TypeError if it is not a tuple of that type."""
    for each in require_type(found, tuple):
        require_type(each, expected)
    return found
