"""What opens a registry, and columns of each format. Their packages load when they are chosen."""

from __future__ import annotations

from rsm.segment.errors import InvalidConfigError, TieredStorageError, UnsupportedError
from spark_tools.schemas.column_types import require_fields
from spark_tools.schemas.schema_text import ColumnSchema, SchemaFormat, SchemaSource, SchemaText
from spark_tools.schemas.settings import RegistrySettings


def open_registry(settings: RegistrySettings) -> SchemaSource:
    """The registry that the settings name. InvalidConfigError for what its client does not take."""
    try:
        from spark_tools.schemas.registry import SchemaRegistry  # noqa: PLC0415
    except ImportError as error:
        raise _not_installed(error) from error
    return SchemaRegistry(settings)


def open_column(schema: SchemaText, message: str | None = None) -> ColumnSchema:
    """What decodes by a schema; `message` is Protobuf's.

    Raises UnsupportedError for a schema that columns cannot have, InvalidConfigError for a package
    that is not installed.
    """
    try:
        column = _opened(schema, message)
    except ImportError as error:
        raise _not_installed(error) from error
    except (TieredStorageError, OSError):
        raise
    except Exception as error:  # of any kind, for a hostile schema
        raise UnsupportedError(
            "a schema cannot be read", reason=f"{type(error).__name__}: {error}"[:200]
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
            raise UnsupportedError("binary has no schema")


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
        "a package for schemas is not installed. Run pip install 'kafka-rlm[schemas]'", reason=error
    )
