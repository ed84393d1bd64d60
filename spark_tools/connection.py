"""Parses the options that locate the cluster and the store, for all jobs and the data source.

The keys are those of the configuration file of `rlm run`. The option `config` names such a file;
only the driver reads it. An option overrides the file. Jobs ignore unused keys of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rsm.config.amounts import parse_duration
from rsm.config.metadata_manager import METADATA_MANAGER_KEY, metadata_plugin
from rsm.config.properties import Properties, read_properties
from rsm.config.section import SET_IT
from rsm.config.storage import RSM_KEYS, StorageConfig, parse_storage, plugin_prefixes
from rsm.config.values import TOPIC_NAME_RULE, is_topic_name
from rsm.layout.keys import ObjectKeys
from rsm.opening import open_segments, open_store
from rsm.plugins.plugin import Plugin
from rsm.secret_keys import is_secret
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.spi import RemoteStorageManager
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.refusals import PERMISSION
from rsm.store_settings import SegmentSettings, Store
from spark_tools.kafka_connector import PREFIX, client_settings
from spark_tools.store_url import store_url

CONFIG = "config"
BOOTSTRAP = "bootstrap.servers"
CLIENT_PREFIX = "client."
_METADATA_TOPIC = "rlmm.config.remote.log.metadata.topic.name"
_ORPHAN_GRACE = "remote.orphan.grace.ms"
_DEFAULT_ORPHAN_GRACE = "1d"
DEAD_LETTER_TOPIC = "remote.delete.dead.letter.topic"
_SPARKS_BOOTSTRAP = "kafka.bootstrap.servers"
_NO_FILE = Properties(source="", entries={})
OPTION_PREFIXES = (CLIENT_PREFIX, PREFIX, "rlmm.", "rsm.")
OPTIONS = frozenset({CONFIG, BOOTSTRAP, _SPARKS_BOOTSTRAP})
"""The options that this module reads, except those with a prefix of OPTION_PREFIXES."""
KEYS = (
    OPTIONS | {_METADATA_TOPIC, METADATA_MANAGER_KEY, _ORPHAN_GRACE, DEAD_LETTER_TOPIC} | RSM_KEYS
)
"""All keys read by this module, except the client's, which librdkafka validates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConnection:
    """Represents the settings of the store and its segments. Spark sends them to the executors."""

    settings: Store
    segment_settings: SegmentSettings = field(default_factory=SegmentSettings)

    def __post_init__(self) -> None:
        """Raise InvalidConfigError for an invalid prefix."""
        ObjectKeys(prefix=self.key_prefix)

    @property
    def key_prefix(self) -> str:
        """Return the common prefix of all objects' names, without the final slash."""
        return self.segment_settings.key_prefix

    @classmethod
    def from_config(cls, config: StorageConfig) -> StoreConnection:
        """Return the part of a configuration that the executors need."""
        return cls(settings=config.store(), segment_settings=config.segments())

    def open(self) -> RemoteStorageManager:
        """Open the storage manager. Raises InvalidConfigError if it rejects its settings."""
        return open_segments(self.segment_settings, open_store(self.settings))

    def open_chunks(self) -> ChunkStorage:
        """Open the store without a storage manager. Raises InvalidConfigError."""
        return open_store(self.settings)

    def require_own_manager(self) -> None:
        """Raise InvalidConfigError if a plug-in, whose objects are unknown, manages the storage."""
        if self.segment_settings.manager is not None:
            raise InvalidConfigError(
                "cannot list the objects of segments: the storage manager is a plug-in",
                option=self.segment_settings.manager.key,
                found=self.segment_settings.manager.class_name,
                advice="Use the tools of the plug-in",
            )

    def require_answer(self) -> None:
        """Raise InvalidConfigError if the store does not answer. A denied listing is an answer.

        Opens and closes a storage manager or layouts that are plug-ins. Sends no listing if the
        storage manager is a plug-in.
        """
        if any(
            isinstance(each, Plugin)
            for each in (self.segment_settings.manager, *self.segment_settings.layouts)
        ):
            self.open().close()
        if self.segment_settings.manager is not None:
            return
        try:
            self.require_listing()
        except InvalidConfigError as error:
            if getattr(error.__cause__, "message", None) != PERMISSION:
                raise

    @property
    def url(self) -> str:
        """Return the store's address for people, without secrets."""
        return store_url(self.settings, self.key_prefix)

    @property
    def listed_prefix(self) -> str:
        """Return the prefix of all objects' names, with the final slash; empty without a prefix."""
        return f"{self.key_prefix}/" if self.key_prefix else ""

    def require_listing(self) -> None:
        """Raise InvalidConfigError if this process cannot list the store. Writes nothing."""
        try:
            storage = self.open_chunks()
            try:
                next(iter(storage.list(self.listed_prefix)), None)
            finally:
                storage.close()
        except RetriableError as error:
            raise InvalidConfigError("cannot list the store", reason=error) from error

    @property
    def keys(self) -> ObjectKeys:
        """Return the names of segments' objects in this store."""
        return ObjectKeys(prefix=self.key_prefix)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConnection:
    """Represents the addresses and settings of the cluster, its metadata topic, and the store.

    `client` is librdkafka's configuration. `values` contains the keys of the configuration file,
    overridden by the options. `file` contains only the keys of the file.
    """

    client: Mapping[str, str] = field(repr=False)
    metadata_topic: str
    metadata_plugin: Plugin | None = None
    store: StoreConnection
    values: Mapping[str, str] = field(repr=False)
    file: Properties = field(default=_NO_FILE, repr=False)

    @property
    def dead_letter_topic(self) -> str:
        """Return the name of the dead-letter topic."""
        return self.values.get(DEAD_LETTER_TOPIC, "__remote_segments_to_be_deleted")

    @property
    def dead_letter_topic_is_named(self) -> bool:
        """Return whether the user names the topic; if not, the topic may not exist yet."""
        return DEAD_LETTER_TOPIC in self.values

    @property
    def orphan_grace_ms(self) -> int:
        """Return the minimum age of an orphan, in ms. Raises InvalidConfigError."""
        text = self.values.get(_ORPHAN_GRACE, _DEFAULT_ORPHAN_GRACE)
        try:
            return parse_duration(text)
        except ValueError as error:
            raise self.invalid(
                "the setting is invalid",
                _ORPHAN_GRACE,
                found=text,
                expected="a duration, such as 1d; in ms if it has no unit",
            ) from error

    def invalid(self, message: str, key: str, **context: object) -> InvalidConfigError:
        """Return an error that names the option `key`, or the file and line if the file sets it."""
        return _invalid(self.values, self.file, message, key, **context)

    def locating(self) -> AbstractContextManager[None]:
        """Return a context that adds the key's source to an error, as `invalid` does."""
        return _located(self.values, self.file)

    @classmethod
    def of(cls, options: Mapping[str, str], *, takes_kafkas: bool = False) -> ClusterConnection:
        """Parse the options. With `takes_kafkas`, `kafka.*` options also configure the client.

        Raises InvalidConfigError for a missing or invalid option, and for an unreadable file.
        """
        file = _file_properties(options.get(CONFIG))
        of_file = file.values()
        values = {**of_file, **options}
        servers = _servers(options) or _servers(of_file)
        if not servers:
            raise _invalid(values, file, "a setting is missing", BOOTSTRAP, advice=SET_IT)
        kafkas = client_settings(options) if takes_kafkas else {}
        client = {**_of_client(of_file), **kafkas, **_of_client(options)}
        with _located(values, file):
            _require_topic_names(values)
            store = StoreConnection.from_config(parse_storage(values))
            plugin = metadata_plugin(values)
        return cls(
            client={**client, BOOTSTRAP: servers},
            metadata_topic=values.get(_METADATA_TOPIC, "__remote_log_segment_metadata"),
            metadata_plugin=plugin,
            store=store,
            values=values,
            file=file,
        )


def refused_client(client: Mapping[str, str], reason: str) -> InvalidConfigError:
    """Return the error for settings that librdkafka rejects; it contains no secrets."""
    blamed = max((key for key in client if key in reason), key=len, default=None)
    shows_secret = any(value and value in reason for key, value in client.items() if is_secret(key))
    return InvalidConfigError(
        "the Kafka client rejects a setting",
        **({} if blamed is None else {"key": f"{CLIENT_PREFIX}{blamed}"}),
        reason="(not shown)" if shows_secret else reason,
        advice="Correct or remove it",
    )


def names_brokers(options: Mapping[str, str]) -> bool:
    """Return whether an option names the brokers; ignore the configuration file."""
    return bool(_servers(options))


def plugin_key_prefixes(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the key prefixes of the plug-ins that the options or the configuration file name."""
    return plugin_prefixes({**_file_properties(options.get(CONFIG)).values(), **options})


@contextmanager
def _located(values: Mapping[str, str], file: Properties) -> Iterator[None]:
    """Add the key's source to an InvalidConfigError that has a key."""
    try:
        yield
    except InvalidConfigError as error:
        context = dict(error.context)
        key = context.pop("key", None)
        if key is None:
            raise
        raise _invalid(values, file, error.message, str(key), **context) from error.__cause__


def _invalid(
    values: Mapping[str, str], file: Properties, message: str, key: str, **context: object
) -> InvalidConfigError:
    """Return an error that names the option `key`, or the file and line if the file sets it."""
    if file.source and values.get(key) == file.get(key):
        return file.invalid(message, key, **context)
    return InvalidConfigError(message, option=key, **context)


def _servers(values: Mapping[str, str]) -> str | None:
    return values.get(_SPARKS_BOOTSTRAP) or values.get(BOOTSTRAP)


def _of_client(values: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings among these keys, without their prefix."""
    return {
        key.removeprefix(CLIENT_PREFIX): value
        for key, value in values.items()
        if key.startswith(CLIENT_PREFIX)
    }


def _require_topic_names(values: Mapping[str, str]) -> None:
    """Raise InvalidConfigError for an invalid topic name; an empty name is invalid."""
    for key in (_METADATA_TOPIC, DEAD_LETTER_TOPIC):
        name = values.get(key, "default")
        if not is_topic_name(name):
            raise InvalidConfigError(
                "the topic's name is invalid", key=key, found=name, expected=TOPIC_NAME_RULE
            )


def _file_properties(path: str | None) -> Properties:
    """Read a properties file; return no keys if `path` is None. Raises InvalidConfigError."""
    return _NO_FILE if path is None else read_properties(Path(path))
