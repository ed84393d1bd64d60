"""Check a configuration against this host's files, before anything is created or started.

Only reads, so a caller that gets an error has changed nothing.
"""

from __future__ import annotations

from pathlib import Path

from rlm.config.load import Config
from rlm.process.state_dir import check_state_dir
from rlm.source.denied_access import denied_access
from rlm.source.meta_properties import BrokerIdentity, read_broker_identity
from rsm.config.store_choice import FILESYSTEM_ROOT_KEY
from rsm.segment.errors import InvalidConfigError


def check_host(config: Config) -> BrokerIdentity:
    """Return the broker whose logs are in `log.dirs`.

    Raises InvalidConfigError for a missing log dir or store root, for log dirs of different
    brokers, and for a log dir or state dir that this user cannot use. Also raises it for a state
    dir or store root within a log dir: a broker does not start with a directory there that belongs
    to no partition.
    """
    for log_dir in config.host.log_dirs:
        _require_directory(log_dir, key="log.dirs")
    check_directories(config)
    return read_broker_identity(config.host.log_dirs)


def check_directories(config: Config) -> None:
    """Check the part of `check_host` that also applies to a host without a broker."""
    log_dirs, state_dir = config.host.log_dirs, config.host.state_dir
    root = config.storage.filesystem_root
    if root is not None:
        _require_directory(root, key=FILESYSTEM_ROOT_KEY)
        _refuse_within_logs(root, log_dirs, key=FILESYSTEM_ROOT_KEY)
    _refuse_within_logs(state_dir, log_dirs, key="state.dir")
    check_state_dir(state_dir)


def _require_directory(path: Path, *, key: str) -> None:
    try:
        is_found = path.is_dir()
    except PermissionError as error:
        raise InvalidConfigError(
            "cannot look up the directory",
            key=key,
            found=path,
            **denied_access(path),
            reason=error.strerror,
            advice="Let this user search the directory that refuses it",
        ) from error
    if not is_found:
        raise InvalidConfigError("cannot find the directory", key=key, found=path)


def _refuse_within_logs(path: Path, log_dirs: tuple[Path, ...], *, key: str) -> None:
    resolved = path.resolve()
    if any(resolved.is_relative_to(log_dir.resolve()) for log_dir in log_dirs):
        raise InvalidConfigError("directory lies within a log directory", key=key, found=path)
