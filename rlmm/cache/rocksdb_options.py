"""Chooses RocksDB's options for the cache's tables: memory limits, filters and compaction.

While a topic is read from its beginning, the two large tables keep more uncompacted files, because
compacting the rows of ten million segments would take more time than all other work. A search reads
each uncompacted file, so the remaining compaction starts just before the first queries. Until it
ends, each query takes several times as long. A compaction may temporarily double the tables' disk
usage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    WriteBufferManager,
)

from rlmm.cache.ordered_store import Table

_BLOOM_BITS_PER_KEY = 10
_MEMTABLE_BLOOM_RATIO = 0.02  # This is a share of a write buffer.
_UNMERGED_FILES = 4
# The fold looks up each segment in SEGMENT_OFFSETS, so that table may have fewer unmerged files.
_UNMERGED_FILES_MEANWHILE = {Table.SEGMENTS: 64, Table.SEGMENT_OFFSETS: 8}
_SLOW_DOWN_FILES, _STOP_FILES = 128, 192
_FIRST_LEVEL_BYTES = 256 * 1024 * 1024
# With a single level, each merge writes once.
_FIRST_LEVEL_BYTES_MEANWHILE = 4 * 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RocksDbSettings:
    """Represents the limits of RocksDB's memory and open files."""

    block_cache_bytes: int = 128 * 1024 * 1024
    write_buffer_bytes: int = 64 * 1024 * 1024
    max_open_files: int = 256


def database_options(
    settings: RocksDbSettings, cache: Cache, buffers: WriteBufferManager
) -> Options:
    """Return the options of the whole directory."""
    options = _basic_options(settings, _block_options(cache))
    options.create_if_missing(True)  # noqa: FBT003 - positional only
    options.create_missing_column_families(True)  # noqa: FBT003 - positional only
    options.set_max_open_files(settings.max_open_files)
    options.set_keep_log_file_num(2)
    options.set_write_buffer_manager(buffers)
    options.set_max_total_wal_size(4 * settings.write_buffer_bytes)
    return options


def table_options(table: Table, settings: RocksDbSettings, cache: Cache) -> Options:
    """Return the initial options of one table, which suit few writes."""
    blocks = _block_options(cache)
    # The fold looks up many segments that are new or are in only one of many files. A filter avoids
    # searching the other files.
    blocks.set_bloom_filter(_BLOOM_BITS_PER_KEY, block_based=False)
    options = _basic_options(settings, blocks)
    if table is not Table.SEGMENTS:  # SEGMENT_OFFSETS shows whether a segment is new
        options.set_memtable_prefix_bloom_ratio(_MEMTABLE_BLOOM_RATIO)
        options.set_memtable_whole_key_filtering(True)
    return options


def merge_options(*, bulk: bool) -> Mapping[Table, Mapping[str, str]]:
    """Return the changed options for many writes (`bulk`) or normal use, by RocksDB's names."""
    first_level_bytes = _FIRST_LEVEL_BYTES_MEANWHILE if bulk else _FIRST_LEVEL_BYTES
    return {
        table: {
            "level0_file_num_compaction_trigger": str(unmerged_files if bulk else _UNMERGED_FILES),
            "max_bytes_for_level_base": str(first_level_bytes),
        }
        for table, unmerged_files in _UNMERGED_FILES_MEANWHILE.items()
    }


def _block_options(cache: Cache) -> BlockBasedOptions:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(cache)
    blocks.set_cache_index_and_filter_blocks(True)
    # A file's unpartitioned index and filter take 1 MB: lookups would evict one another's blocks.
    blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_pin_top_level_index_and_filter(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    return blocks


def _basic_options(settings: RocksDbSettings, blocks: BlockBasedOptions) -> Options:
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_size(settings.write_buffer_bytes // 4)
    options.set_max_write_buffer_number(2)
    # Decompression costs little: a lookup that misses the block cache reads only one or two blocks.
    options.set_compression_type(DBCompressionType.lz4())
    options.set_level_zero_file_num_compaction_trigger(_UNMERGED_FILES)
    options.set_level_zero_slowdown_writes_trigger(_SLOW_DOWN_FILES)
    options.set_level_zero_stop_writes_trigger(_STOP_FILES)
    options.set_max_bytes_for_level_base(_FIRST_LEVEL_BYTES)
    return options
