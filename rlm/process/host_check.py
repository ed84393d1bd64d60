"""Checks a configuration against this host's files, before anything is created or started.

The checks only read, so a failed check changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from rlm.config.load import Config
from rlm.process.state_dir import check_state_dir
from rlm.source.denied_access import denied_access
from rlm.source.meta_properties import BrokerIdentity, read_broker_identity
from rsm.config.store_choice import FILESYSTEM_ROOT_KEY
from rsm.segment.errors import HostNotReadyError, InvalidConfigError

_LOG_DIRS = "log.dirs"
_SET_LOG_DIR = (
    "rlm can start once the disk is mounted. Otherwise set log.dirs as in the broker's "
    "server.properties"
)
_MOUNT_IT = "Mount or create it: rlm does not create it, and can start once it exists"


def check_host(config: Config) -> BrokerIdentity:
    """Return the broker whose logs are in `log.dirs`.

    Raises HostNotReadyError for a missing log dir or store root, or if no broker has formatted a
    log dir yet. Raises InvalidConfigError for log dirs of different brokers, for a malformed
    identity file, and for a directory that this user cannot use. Also raises it for a state dir or
    store root within a log dir: a broker does not start if a directory there belongs to no
    partition.
    """
    for log_dir in config.host.log_dirs:
        _require_directory(log_dir, key=_LOG_DIRS)
    check_directories(config)
    return read_broker_identity(config.host.log_dirs)


def check_directories(config: Config) -> None:
    """Check the part of `check_host` that also applies to a host without a broker."""
    for check in _directory_checks(config):
        check()


def directory_problems(config: Config) -> tuple[InvalidConfigError, ...]:
    """Return all errors; `check_host` raises only the first."""
    log_dirs = config.host.log_dirs
    missing = _errors(partial(_require_directory, each, key=_LOG_DIRS) for each in log_dirs)
    others = _errors(_directory_checks(config))
    # Reading the identity needs all log dirs, and would fail again for a missing one.
    identity = () if missing else _errors([partial(read_broker_identity, log_dirs)])
    return (*missing, *others, *identity)


def _directory_checks(config: Config) -> Iterator[Callable[[], object]]:
    log_dirs, state_dir = config.host.log_dirs, config.host.state_dir
    root = config.storage.filesystem_root
    if root is not None:
        yield partial(_require_directory, root, key=FILESYSTEM_ROOT_KEY, advice=_MOUNT_IT)
        yield partial(_refuse_within_logs, root, log_dirs, key=FILESYSTEM_ROOT_KEY)
    yield partial(_refuse_within_logs, state_dir, log_dirs, key="state.dir")
    yield partial(check_state_dir, state_dir)


def _errors(checks: Iterable[Callable[[], object]]) -> tuple[InvalidConfigError, ...]:
    return tuple(error for check in checks if (error := _error(check)) is not None)


def _error(check: Callable[[], object]) -> InvalidConfigError | None:
    try:
        check()
    except InvalidConfigError as error:
        return error
    return None


def _require_directory(path: Path, *, key: str, advice: str = _SET_LOG_DIR) -> None:
    try:
        is_found = path.is_dir()
    except PermissionError as error:
        raise InvalidConfigError(
            "cannot look up the directory",
            key=key,
            path=path,
            **denied_access(path),
            reason=error.strerror,
            advice="Grant this user search permission (x) on the directory that denies access",
        ) from error
    if not is_found:
        raise HostNotReadyError("cannot find the directory", key=key, path=path, advice=advice)


def _refuse_within_logs(path: Path, log_dirs: tuple[Path, ...], *, key: str) -> None:
    resolved = path.resolve()
    if any(resolved.is_relative_to(log_dir.resolve()) for log_dir in log_dirs):
        raise InvalidConfigError(
            "the directory is invalid: it is within a log directory",
            key=key,
            found=path,
            advice="Set a directory outside of log.dirs: the broker does not start with this one",
        )
