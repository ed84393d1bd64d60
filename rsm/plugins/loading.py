"""Imports a plug-in's class, checks it against its SPI, and creates an instance.

All errors of a start are InvalidConfigError with the class and its key. The import and the
constructor run in a separate thread, so that `rlm` can report a start that hangs. In that thread, a
plug-in cannot install signal handlers.
"""

from __future__ import annotations

import importlib
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TypeVar

from rsm.plugins.plugin import ClassName, Plugin, PluginSettings
from rsm.segment.errors import InvalidConfigError, TieredStorageError

T = TypeVar("T")


def start_plugin(
    plugin: Plugin,
    spi: type[T],
    construct: Callable[[type[T], PluginSettings], T] | None = None,
) -> T:
    """Return a new object of the class, built by `construct`, or from the settings if None.

    Raises InvalidConfigError if the class cannot be imported, does not implement all of `spi`,
    raises an error or hangs in its constructor, or leaves a setting unread.
    """
    return _in_time(plugin, lambda: _started(plugin, spi, construct or _from_settings))


def check_plugin(plugin: Plugin, spi: type[object]) -> None:
    """Check that the class can be imported and implements `spi`. Raises InvalidConfigError."""
    _in_time(plugin, lambda: load_class(plugin.class_name, spi, key=plugin.key))


def _in_time(plugin: Plugin, start: Callable[[], T]) -> T:
    started: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            started.append(start())
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            failed.append(error)

    thread = threading.Thread(target=run, name=f"plugin-{plugin.class_name}", daemon=True)
    thread.start()
    thread.join(plugin.timeout_ms / 1000)
    if failed:
        _raise_start_error(plugin, failed[0])
    if not started:
        raise _invalid(plugin, "the plug-in did not start in time", timeout_ms=plugin.timeout_ms)
    return started[0]


def load_class(name: ClassName, spi: type[T], *, key: str) -> type[T]:
    """Import a class and check that it implements `spi`. Raises InvalidConfigError."""
    try:
        module = importlib.import_module(name.module)
    except (Exception, SystemExit) as error:
        raise InvalidConfigError(
            "the plug-in cannot be imported",
            key=key,
            plugin=name,
            reason=_reason(error),
            advice="Install its package in the environment of rlm, and check the class name",
        ) from error
    found = getattr(module, name.name, None)
    if not (isinstance(found, type) and issubclass(found, spi)):
        raise InvalidConfigError(
            "the plug-in does not implement its interface",
            key=key,
            plugin=name,
            expected=f"a class that extends {spi.__module__}.{spi.__qualname__}",
            advice="Correct the class, or name another one",
        )
    if inspect.isabstract(found):
        raise InvalidConfigError(
            "the plug-in lacks methods of its interface",
            key=key,
            plugin=name,
            missing=", ".join(sorted(getattr(found, "__abstractmethods__", ()))),
            advice="Add the methods, or install a version of the plug-in that has them",
        )
    return found


def _started(plugin: Plugin, spi: type[T], construct: Callable[[type[T], PluginSettings], T]) -> T:
    found = load_class(plugin.class_name, spi, key=plugin.key)
    settings = PluginSettings(plugin.settings)
    made = construct(found, settings)
    unread = settings.never_read() - plugin.unread
    if unread:
        with suppress(Exception):
            getattr(made, "close", lambda: None)()
        raise _invalid(
            plugin,
            "the plug-in does not know a setting",
            setting=plugin.prefix + min(unread),
            advice="Correct the setting's name, or remove the setting",
        )
    return made


def _from_settings(found: type[T], settings: PluginSettings) -> T:
    construct: Callable[[PluginSettings], T] = found
    return construct(settings)


def _raise_start_error(plugin: Plugin, error: BaseException) -> NoReturn:
    """Raise an error that names the class and its key, without the values of its secrets."""
    if isinstance(error, InvalidConfigError) and error.context.get("plugin") == plugin.class_name:
        raise error
    text = str(error) if isinstance(error, TieredStorageError) else _reason(error)
    for secret in plugin.secrets():
        text = text.replace(secret, "(not shown)")
    raise _invalid(plugin, "the plug-in cannot be started", reason=text) from error


def _invalid(plugin: Plugin, message: str, **context: object) -> InvalidConfigError:
    return InvalidConfigError(message, key=plugin.key, plugin=plugin.class_name, **context)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
