"""Loads the configuration from a file, or raises an error with the file, line and key.

An unknown key is an error, because a misspelled key would silently leave the default active.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rlm.config.client_properties import (
    COMMON_KEYS,
    PREFIX,
    ClientProperties,
    is_owned,
)
from rlm.config.copying import CopyingConfig
from rlm.config.deleting import DeletingConfig
from rlm.config.gateway_limits import GatewayLimitsConfig
from rlm.config.offloading import (
    MODE_KEY,
    ROLLOVER_KEY,
    STREAM_BUFFER_KEY,
    OffloadingConfig,
    TopicDefaultsConfig,
)
from rlm.config.scrubbing import ScrubbingConfig
from rlm.config.sections import (
    CLIENT_KEYS,
    SECTIONS,
    ClusterConfig,
    GatewayConfig,
    HostConfig,
    ManagerConfig,
    MetadataConfig,
    ProcessConfig,
    known_keys,
)
from rlm.config.tls import NAME_TEMPLATE_KEY, GatewayTlsConfig, RestTlsConfig
from rsm.config.choices import GivenSettings
from rsm.config.fetch_cache import CACHE_PATH_KEY
from rsm.config.metadata_manager import METADATA_PLUGIN_KEYS, METADATA_PREFIX
from rsm.config.properties import Properties, Property, named_source, read_properties
from rsm.config.section import SET_IT, Section, keys_of, parse_section, section_problems
from rsm.config.storage import (
    STORE_KEYS,
    StorageConfig,
    plugin_prefixes,
    storage_values,
)
from rsm.config.store_choice import BACKEND_KEY, FILESYSTEM_ROOT_KEY
from rsm.segment.errors import InvalidConfigError

_OWN_PREFIXES = (PREFIX, "rsm.", "rlmm.", "remote.")
_LOG_DIRS_KEY = "log.dirs"
_NODE_LISTENERS_KEY = "gateway.node.listeners"
_REMOVE_IT = "Remove it: docs/config.md has all settings"
_LEAST_LIKENESS = 0.6  # A key with a lower difflib ratio is not suggested.

S = TypeVar("S", bound=Section)

ClientCheck = Callable[[Mapping[str, str]], None]
"""Checks the Kafka client's settings, given without prefix and with secrets in clear.

Raises InvalidConfigError; its context contains the wrong setting as `key`, if known.
"""


def _take_any(_client: Mapping[str, str]) -> None:
    """Accept any client settings: some callers open no Kafka client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Represents the configuration of a broker's host, or of a gateway of the whole cluster."""

    cluster: ClusterConfig
    host: HostConfig
    storage: StorageConfig
    metadata: MetadataConfig
    manager: ManagerConfig
    copying: CopyingConfig
    offloading: OffloadingConfig
    topic_defaults: TopicDefaultsConfig
    deleting: DeletingConfig
    scrubbing: ScrubbingConfig
    gateway: GatewayConfig
    gateway_limits: GatewayLimitsConfig
    gateway_tls: GatewayTlsConfig
    process: ProcessConfig
    rest_tls: RestTlsConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandConfig:
    """Represents the configuration of a command on any host.

    `source` is the file, or the option that replaces it. `storage` is None if no store was given.
    """

    source: str
    cluster: ClusterConfig
    storage: StorageConfig | None
    metadata: MetadataConfig
    manager: ManagerConfig
    offloading: OffloadingConfig
    topic_defaults: TopicDefaultsConfig
    deleting: DeletingConfig
    rest_tls: RestTlsConfig

    def required_storage(self) -> StorageConfig:
        """Return the settings of the store.

        Raises InvalidConfigError if none was given.
        """
        if self.storage is None:
            raise InvalidConfigError(
                "a setting of the store is missing",
                **named_source(self.source),
                key=FILESYSTEM_ROOT_KEY,
                advice=f"Set it, or {BACKEND_KEY} and the keys of another store",
            )
        return self.storage


def load_config(path: Path, check_client: ClientCheck = _take_any) -> Config:
    """Load the configuration of `rlm run`. Raises InvalidConfigError.

    Reads no other file, unless `check_client` does.
    """
    properties = read_properties(path)
    config = _config(properties, check_client)
    if not config.host.log_dirs:
        raise properties.invalid("a setting is missing", _LOG_DIRS_KEY, advice=SET_IT)
    return config


def load_gateway_config(path: Path, check_client: ClientCheck = _take_any) -> Config:
    """Load the configuration of `rlm gateway`, which may lack `log.dirs`.

    Raises the errors of `load_config`.
    """
    return _config(read_properties(path), check_client)


def config_problems(
    path: Path, check_client: ClientCheck = _take_any
) -> tuple[InvalidConfigError, ...]:
    """Return the errors that `load_config` could raise; empty if it accepts the file.

    Compares parsed settings of several sections only if there is no other error, and then returns
    only the first error. Raises InvalidConfigError if the file cannot be read.
    """
    properties = read_properties(path)
    found = [*_unknown_keys(properties), *_misplaced_keys(properties)]
    try:
        _check_client(properties, check_client)
    except InvalidConfigError as error:
        found.append(error)
    for section in SECTIONS:
        problems = section_problems(section, _section_values(section, properties))
        found.extend(_located(properties, problem) for problem in problems)
    if _LOG_DIRS_KEY not in properties.entries:
        found.append(properties.invalid("a setting is missing", _LOG_DIRS_KEY, advice=SET_IT))
    if not found:
        try:
            load_config(path)
        except InvalidConfigError as error:  # The settings contradict each other.
            found.append(error)
    return tuple(found)


def _config(properties: Properties, check_client: ClientCheck) -> Config:
    _raise_first(_unknown_keys(properties))
    _raise_first(_misplaced_keys(properties))
    _check_client(properties, check_client)
    config = Config(
        cluster=_parse(ClusterConfig, properties),
        host=_parse(HostConfig, properties),
        storage=_parse(StorageConfig, properties),
        metadata=_parse(MetadataConfig, properties),
        manager=_parse(ManagerConfig, properties),
        copying=_parse(CopyingConfig, properties),
        offloading=_parse(OffloadingConfig, properties),
        topic_defaults=_parse(TopicDefaultsConfig, properties),
        deleting=_parse(DeletingConfig, properties),
        scrubbing=_parse(ScrubbingConfig, properties),
        gateway=_parse(GatewayConfig, properties),
        gateway_limits=_parse(GatewayLimitsConfig, properties),
        gateway_tls=_parse(GatewayTlsConfig, properties),
        process=_parse(ProcessConfig, properties),
        rest_tls=_parse(RestTlsConfig, properties),
    )
    if config.storage.segments().manager is not None and config.gateway.chunk_cache_path:
        raise properties.invalid(
            "the setting has no effect, because a plug-in replaces the storage manager",
            CACHE_PATH_KEY,
            advice="Remove it",
        )
    if config.storage.segments().manager is not None and config.offloading.mode == "stream":
        raise properties.invalid(
            "a plug-in replaces the storage manager, and cannot stream",
            MODE_KEY,
            advice="Set it to segment",
        )
    _check_stream_buffer(properties, config)
    _check_rollover(properties, config)
    return config


def _check_stream_buffer(properties: Properties, config: Config) -> None:
    """Reject a buffer smaller than an upload's part, if the file sets it or topics stream."""
    buffer_bytes, part_bytes = config.offloading.stream_buffer_bytes, config.storage.part_bytes
    is_used = STREAM_BUFFER_KEY in properties.entries or config.offloading.mode == "stream"
    if is_used and buffer_bytes < part_bytes:
        raise properties.invalid(
            "the setting is invalid: the buffer is smaller than a part of an upload",
            STREAM_BUFFER_KEY,
            buffer_bytes=buffer_bytes,
            part_bytes=part_bytes,
            advice=f"Raise {STREAM_BUFFER_KEY}, or lower the size of the store's parts",
        )


def _check_rollover(properties: Properties, config: Config) -> None:
    """Reject a rollover time longer than a retention that the same file sets.

    Otherwise retention could remove records before they are stored. A local retention of 0 does not
    count: it removes each record from the local log only after the record is stored.
    """
    if ROLLOVER_KEY not in properties.entries:
        return  # Each topic compares the default with its own retention.
    rollover_ms, defaults = config.offloading.segment_rollover_ms, config.topic_defaults
    for key, limit_ms in (
        ("log.retention.ms", defaults.retention_ms),
        ("log.local.retention.ms", defaults.local_retention_ms or None),
    ):
        if limit_ms is not None and 0 <= limit_ms < rollover_ms:
            raise properties.invalid(
                f"the setting is invalid: the rollover time is longer than {key}",
                ROLLOVER_KEY,
                rollover_ms=rollover_ms,
                retention_ms=limit_ms,
                advice=f"Lower {ROLLOVER_KEY}, or raise {key}",
            )


def load_command_config(path: Path, check_client: ClientCheck = _take_any) -> CommandConfig:
    """Load the settings of `rlm run`'s file that commands need. Raises InvalidConfigError."""
    return _command_config(read_properties(path), check_client)


def load_storage_config(path: Path) -> StorageConfig:
    """Load the store's settings from `rlm run`'s file, which may lack all others.

    Raises InvalidConfigError.
    """
    properties = read_properties(path)
    _raise_first(_unknown_keys(properties))
    if not any(properties.get(key) for key in STORE_KEYS):
        raise properties.invalid("a setting is missing", FILESYSTEM_ROOT_KEY, advice=SET_IT)
    return _parse(StorageConfig, properties)


def client_command_config(
    bootstrap_server: str, path: Path | None, check_client: ClientCheck = _take_any
) -> CommandConfig:
    """Build the configuration of a command whose command line names the cluster.

    The file at `path` contains properties of the Kafka client without a prefix, as for Kafka's own
    tools. It may also contain keys of `rlm run`'s file. Raises InvalidConfigError.
    """
    source = "--bootstrap-server" if path is None else str(path)
    given = {} if path is None else read_properties(path).entries
    entries = {_prefixed(key): entry for key, entry in given.items()}
    entries["bootstrap.servers"] = Property(value=bootstrap_server)
    return _command_config(Properties(source=source, entries=entries), check_client)


def _command_config(properties: Properties, check_client: ClientCheck) -> CommandConfig:
    _raise_first(_unknown_keys(properties))
    _check_client(properties, check_client)
    has_store = any(properties.get(key) for key in STORE_KEYS)
    return CommandConfig(
        source=properties.source,
        cluster=_parse(ClusterConfig, properties),
        storage=_parse(StorageConfig, properties) if has_store else None,
        metadata=_parse(MetadataConfig, properties),
        manager=_parse(ManagerConfig, properties),
        offloading=_parse(OffloadingConfig, properties),
        topic_defaults=_parse(TopicDefaultsConfig, properties),
        deleting=_parse(DeletingConfig, properties),
        rest_tls=_parse(RestTlsConfig, properties),
    )


def _prefixed(key: str) -> str:
    is_own = key in known_keys() or key.startswith(_OWN_PREFIXES)
    return key if is_own else PREFIX + key


def _raise_first(problems: Iterator[InvalidConfigError]) -> None:
    for problem in problems:
        raise problem


def _unknown_keys(properties: Properties) -> Iterator[InvalidConfigError]:
    known = known_keys()
    of_plugins = plugin_prefixes(properties.values())
    for key in properties.entries:
        if key.startswith(PREFIX):
            if is_owned(key.removeprefix(PREFIX)):
                yield properties.invalid(
                    "the setting is reserved: rlm sets it", key, advice="Remove it"
                )
        elif key not in known and not key.startswith(of_plugins):
            yield properties.invalid("the setting is unknown", key, **_suggestion(key, known))


def _suggestion(key: str, known: Iterable[str]) -> Mapping[str, str]:
    """Return the known key with the most similar spelling; advice if none is similar."""
    meant = [name for name in known if name != CLIENT_KEYS]
    meant += [PREFIX + name for name in COMMON_KEYS]
    nearest = difflib.get_close_matches(key, meant, n=1, cutoff=_LEAST_LIKENESS)
    return {"did_you_mean": nearest[0]} if nearest else {"advice": _REMOVE_IT}


def _misplaced_keys(properties: Properties) -> Iterator[InvalidConfigError]:
    """Yield errors for whole-cluster keys that conflict with `log.dirs` or with each other."""
    given = [key for key in (_NODE_LISTENERS_KEY, NAME_TEMPLATE_KEY) if key in properties.entries]
    if given and _LOG_DIRS_KEY in properties.entries:
        yield properties.invalid(
            f"the setting is for a gateway of the whole cluster, which has no {_LOG_DIRS_KEY}",
            given[0],
            advice=f"Remove this key, or {_LOG_DIRS_KEY}",
        )
    if len(given) > 1:
        yield properties.invalid(
            f"the setting has no effect together with {NAME_TEMPLATE_KEY}",
            given[0],
            advice="Remove one of the two",
        )


def _parse(section: type[S], properties: Properties) -> S:
    try:
        return parse_section(section, _section_values(section, properties))
    except InvalidConfigError as error:
        raise _located(properties, error) from None


def _section_values(section: type[Section], properties: Properties) -> Mapping[str, object]:
    if section is StorageConfig:
        return storage_values(properties.values())
    values: dict[str, object] = {
        key: properties.entries[key].value for key in keys_of(section) if key in properties.entries
    }
    if CLIENT_KEYS in keys_of(section):
        values[CLIENT_KEYS] = _client_properties(properties)
    if METADATA_PLUGIN_KEYS in keys_of(section):
        given = GivenSettings.of(properties.values(), METADATA_PREFIX)
        values[METADATA_PLUGIN_KEYS] = given
    return values


def _located(properties: Properties, error: InvalidConfigError) -> InvalidConfigError:
    """Return the error with the file and the line of the wrong key."""
    context = dict(error.context)
    return properties.invalid(error.message, str(context.pop("key")), **context)


def _client_properties(properties: Properties) -> ClientProperties:
    return ClientProperties.of(
        {
            key.removeprefix(PREFIX): entry.value
            for key, entry in properties.entries.items()
            if key.startswith(PREFIX)
        }
    )


def _check_client(properties: Properties, check_client: ClientCheck) -> None:
    try:
        check_client(_client_properties(properties).librdkafka())
    except InvalidConfigError as error:
        context = dict(error.context)
        key = PREFIX + str(context.pop("key", "*"))
        if meant := context.get("did_you_mean"):
            context["did_you_mean"] = f"{PREFIX}{meant}"
        raise properties.invalid(error.message, key, **context) from error
