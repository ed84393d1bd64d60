"""Opens registries and column decoders. Imports only the packages that they need."""

from __future__ import annotations

from rsm.segment.errors import InvalidConfigError, TieredStorageError, UnsupportedError
from spark_tools.schemas.column_types import require_fields
from spark_tools.schemas.schema_text import ColumnSchema, SchemaFormat, SchemaSource, SchemaText
from spark_tools.schemas.settings import RegistrySettings


def open_registry(settings: RegistrySettings) -> SchemaSource:
    """Open a registry.

    Raises InvalidConfigError if its client rejects the settings or is not installed.
    """
    try:
        from spark_tools.schemas.registry import SchemaRegistry  # noqa: PLC0415
    except ImportError as error:
        raise _not_installed(error) from error
    return SchemaRegistry(settings)


def open_column(schema: SchemaText, message: str | None = None) -> ColumnSchema:
    """Open a schema as a column; `message` selects a message of a Protobuf schema by its name.

    Raises UnsupportedError if the schema is invalid or has no column type, and InvalidConfigError
    if a package is not installed.
    """
    try:
        column = _opened(schema, message)
    except ImportError as error:
        raise _not_installed(error) from error
    except (TieredStorageError, OSError):
        raise
    except Exception as error:  # A hostile schema can raise any error.
        raise UnsupportedError(
            "cannot read a schema", reason=f"{type(error).__name__}: {error}"[:200]
        ) from error
    require_fields(column.arrow_type)
    return column


def _opened(schema: SchemaText, message: str | None) -> ColumnSchema:
    match schema.format:
        case SchemaFormat.AVRO:
            return _open_avro(schema)
        case SchemaFormat.PROTOBUF:
            return _open_protobuf(schema, message)
        case SchemaFormat.JSON:
            return _open_json(schema)
        case SchemaFormat.BINARY:
            raise UnsupportedError("cannot open a schema: the format binary has none")


def _open_avro(schema: SchemaText) -> ColumnSchema:
    from spark_tools.schemas.avro.avro_schema import AvroColumn  # noqa: PLC0415

    return AvroColumn(schema)


def _open_protobuf(schema: SchemaText, message: str | None) -> ColumnSchema:
    from spark_tools.schemas.protobuf_schema import ProtobufColumn  # noqa: PLC0415

    return ProtobufColumn(schema, message)


def _open_json(schema: SchemaText) -> ColumnSchema:
    from spark_tools.schemas.json_schema import JsonColumn  # noqa: PLC0415

    return JsonColumn(schema)


def _not_installed(error: ImportError) -> InvalidConfigError:
    return InvalidConfigError(
        "cannot decode columns: a package is not installed",
        reason=error,
        advice="Run pip install 'kafka-rlm[schemas]'",
    )
