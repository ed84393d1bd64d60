"""Lists the options for decoding columns and for reading their schemas. Pure.

Each registry option except `config` and `request.timeout.ms` is a key of Confluent's Python client
with the prefix `schema.registry.`.
"""

from __future__ import annotations

from spark_tools.option_values import OptionType, SourceOption

REGISTRY_PREFIX = "schema.registry."
DECODED_COLUMNS = ("key", "value")
_MAX_VERSION = (1 << 31) - 1
_MAX_MS = 600_000
_IN_KAFKA_SOURCE = "none; `from_avro` and similar functions"


def schema_version_of(column: str) -> SourceOption:
    """Return the option for the version of a column's schema: a number or `latest`."""
    return SourceOption(
        name=f"{column}SchemaVersion",
        type=OptionType.NUMBER,
        meaning="The version of the subject's schema.",
        example="3",
        default="latest",
        choices=("latest",),
        least=1,
        most=_MAX_VERSION,
        in_kafka_source=_IN_KAFKA_SOURCE,
    )


def _of_column(column: str) -> tuple[SourceOption, ...]:
    return (
        SourceOption(
            name=f"{column}Format",
            type=OptionType.CHOICE,
            meaning=f"The format of `{column}`. `binary`: it is not decoded.",
            example="avro",
            default="binary",
            choices=("binary", "avro", "protobuf", "json"),
            in_kafka_source=_IN_KAFKA_SOURCE,
        ),
        SourceOption(
            name=f"{column}Subject",
            type=OptionType.TEXT,
            meaning=f"The registry's subject with the schema of `{column}`. Default: "
            f"`<topic>-{column}`, if exactly one topic is read.",
            example=f"orders-{column}",
            in_kafka_source=_IN_KAFKA_SOURCE,
        ),
        schema_version_of(column),
        SourceOption(
            name=f"{column}Schema",
            type=OptionType.TEXT,
            meaning="The text of a schema, or a file that contains it, instead of a subject. Only "
            "the driver reads the file.",
            example='{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}',
            in_kafka_source=_IN_KAFKA_SOURCE,
        ),
        SourceOption(
            name=f"{column}Message",
            type=OptionType.TEXT,
            meaning=f"Protobuf: the name of the message in `{column}`. Default: the schema's first "
            "message.",
            example="acme.Order",
            in_kafka_source=_IN_KAFKA_SOURCE,
        ),
    )


DECODE_OPTIONS = (
    *(option for column in DECODED_COLUMNS for option in _of_column(column)),
    SourceOption(
        name="decodeMode",
        type=OptionType.CHOICE,
        meaning="How to treat an undecodable record. `failfast`: its task fails. `permissive`: its "
        "decoded column is null, and an error column gives the reason.",
        example="permissive",
        default="failfast",
        choices=("failfast", "permissive"),
        in_kafka_source="`mode` of `from_avro`",
    ),
)


def _of_registry(
    key: str,
    meaning: str,
    example: str,
    *,
    type: OptionType = OptionType.TEXT,  # noqa: A002 - as the field
    default: str = "",
    least: int = 0,
    most: int = 0,
) -> SourceOption:
    return SourceOption(
        name=f"{REGISTRY_PREFIX}{key}",
        type=type,
        meaning=meaning,
        example=example,
        default=default,
        least=least,
        most=most,
    )


REQUEST_TIMEOUT = _of_registry(
    "request.timeout.ms",
    "Timeout of one request to the registry; in ms if it has no unit.",
    "30s",
    type=OptionType.DURATION,
    default="10s",
    least=1,
    most=_MAX_MS,
)
MAX_RETRIES = _of_registry(
    "max.retries",
    "Maximum number of retries of a request.",
    "5",
    type=OptionType.NUMBER,
    default="3",
    most=20,
)
RETRY_WAIT = _of_registry(
    "retries.wait.ms",
    "Maximum pause before the first retry; in ms if it has no unit. The maximum doubles with each "
    "retry; each pause is random.",
    "500ms",
    type=OptionType.DURATION,
    default="100ms",
    least=1,
    most=_MAX_MS,
)
MAX_RETRY_WAIT = _of_registry(
    "retries.max.wait.ms",
    "Maximum pause before any retry; in ms if it has no unit.",
    "5s",
    type=OptionType.DURATION,
    default="2s",
    least=1,
    most=_MAX_MS,
)
CLIENT_KEYS = (
    _of_registry(
        "basic.auth.user.info",
        "User and password for basic authentication: `user:password`.",
        "reader:secret",
    ),
    _of_registry(
        "bearer.auth.token", "Bearer token; use it instead of user and password.", "token"
    ),
    _of_registry(
        "bearer.auth.logical.cluster",
        "With a bearer token: the id of the registry's cluster in Confluent Cloud.",
        "lsrc-1",
    ),
    _of_registry(
        "bearer.auth.identity.pool.id",
        "With a bearer token: the id of an identity pool in Confluent Cloud.",
        "pool-1",
    ),
    _of_registry(
        "ssl.ca.location",
        "TLS: the trusted certificate authorities, in PEM. This file, the certificate and the key "
        "must have the same paths on the driver and on every executor. Default: SSL_CERT_FILE or "
        "SSL_CERT_DIR of the environment; if both are unset, certifi's authorities.",
        "/etc/registry/ca.pem",
        type=OptionType.FILE,
    ),
    _of_registry(
        "ssl.certificate.location",
        "TLS: the client's certificate, in PEM.",
        "/etc/registry/client.pem",
        type=OptionType.FILE,
    ),
    _of_registry(
        "ssl.key.location",
        "TLS: the client's key, in PEM.",
        "/etc/registry/client.key",
        type=OptionType.FILE,
    ),
    _of_registry("ssl.key.password", "TLS: the password of the key.", "secret"),
)
"""Settings that are passed to Confluent's client unchanged, without the prefix in their names."""
REGISTRY_OPTIONS = (
    _of_registry(
        "url",
        "URLs of a registry with Confluent's REST API, comma-separated. Each key or value to "
        "decode must then begin with Confluent's header: a magic byte and the schema's id. Without "
        "this option, it must have no header and must fit `keySchema` or `valueSchema`.",
        "https://registry:8081",
    ),
    _of_registry(
        "config",
        "A file with `schema.registry.*` keys, for secrets. Only the driver reads the file. An "
        "option overrides the same key in the file.",
        "registry.properties",
        type=OptionType.FILE,
    ),
    *CLIENT_KEYS,
    REQUEST_TIMEOUT,
    MAX_RETRIES,
    RETRY_WAIT,
    MAX_RETRY_WAIT,
)
