"""Starts a plug-in that extends a class of `rlm`, and maps errors of the overridden methods.

The plug-in's constructor gets the arguments of that class, and then the plug-in's own settings.
Other processes rely on what the class of `rlm` does; the plug-in may only add to it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rsm.plugins.calls import PluginCalls, PluginFailed
from rsm.plugins.loading import start_plugin
from rsm.plugins.plugin import Plugin, PluginSettings
from rsm.segment.errors import TieredStorageError

T = TypeVar("T")


def start_subclass(plugin: Plugin, base: type[T], failed: PluginFailed, *arguments: object) -> T:
    """Return a new object of a class that extends `base`. Raises the errors of `start_plugin`.

    The object's public methods run in the caller's thread, without a time limit.
    """
    calls = PluginCalls(plugin, failed)

    def construct(found: type[T], settings: PluginSettings) -> T:
        mapped: Callable[..., T] = _mapped_class(found, base, calls)
        return mapped(*arguments, settings)

    return start_plugin(plugin, base, construct)


def _mapped_class(found: type[T], base: type[T], calls: PluginCalls) -> type[T]:
    """Return a class that extends `found` and maps the errors of its public overrides."""
    overrides = {}
    for name, member in inspect.getmembers_static(found):
        if name.startswith("_") or member is inspect.getattr_static(base, name, None):
            continue
        mapped = _mapped_member(member, name, calls)
        if mapped is not member:
            overrides[name] = mapped
    return type(found.__name__, (found,), {"__module__": found.__module__, **overrides})


def _mapped_member(member: object, name: str, calls: PluginCalls) -> object:
    if isinstance(member, property):
        getter = None if member.fget is None else _mapped(member.fget, name, calls)
        return property(getter, member.fset, member.fdel, member.__doc__)
    if isinstance(member, classmethod | staticmethod):
        return type(member)(_mapped(member.__func__, name, calls))
    return _mapped(member, name, calls) if inspect.isfunction(member) else member


def _mapped(function: Callable[..., Any], name: str, calls: PluginCalls) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - those of any method
        with calls.mapped(name, permits=_is_typed):
            result = function(*arguments, **options)
        return _items(result, name, calls) if isinstance(result, Iterator) else result

    return call


def _items(items: Iterator[T], name: str, calls: PluginCalls) -> Iterator[T]:
    with calls.mapped(name, permits=_is_typed):
        yield from items


def _is_typed(_method: str, error: BaseException) -> bool:
    """Permit all errors of `rlm`, because the overridden method may raise them."""
    return isinstance(error, TieredStorageError)
