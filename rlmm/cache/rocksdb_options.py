"""How RocksDB is set up for the cache's tables: bounds of its memory, filters, compactions.

While much is written at once and little is read, as when a topic is read from its beginning, files
of the two large tables are left unmerged for longer: at ten million segments merging them would
otherwise take more time than all else. Meanwhile a merge may need as much disk again as the tables
take. A search must look into each unmerged file, so merging begins when questions are about to be
answered; until it ends each of them takes several times as long.
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
_MEMTABLE_BLOOM_RATIO = 0.02  # of a write buffer
_UNMERGED_FILES = 4
# That a segment is new is asked of the offsets, so their files are looked into meanwhile too.
_UNMERGED_FILES_MEANWHILE = {Table.SEGMENTS: 64, Table.SEGMENT_OFFSETS: 8}
_SLOW_DOWN_FILES, _STOP_FILES = 128, 192
_FIRST_LEVEL_BYTES = 256 * 1024 * 1024
_FIRST_LEVEL_BYTES_MEANWHILE = 4 * 1024 * 1024 * 1024  # one level, so each merge writes once


@dataclass(frozen=True, slots=True, kw_only=True)
class RocksDbSettings:
    """Bounds of what RocksDB keeps in memory and open."""

    block_cache_bytes: int = 128 * 1024 * 1024
    write_buffer_bytes: int = 64 * 1024 * 1024
    max_open_files: int = 256


def database_options(
    settings: RocksDbSettings, cache: Cache, buffers: WriteBufferManager
) -> Options:
    """What holds for the whole directory."""
    options = _basic_options(settings, _block_options(cache))
    options.create_if_missing(True)  # noqa: FBT003 - positional only
    options.create_missing_column_families(True)  # noqa: FBT003 - positional only
    options.set_max_open_files(settings.max_open_files)
    options.set_keep_log_file_num(2)
    options.set_write_buffer_manager(buffers)
    options.set_max_total_wal_size(4 * settings.write_buffer_bytes)
    return options


def table_options(table: Table, settings: RocksDbSettings, cache: Cache) -> Options:
    """What holds for one table. Merging begins as when little is written."""
    blocks = _block_options(cache)
    # Most segments that a fold asks for are new, or in one of many files: a filter says so without
    # a search.
    blocks.set_bloom_filter(_BLOOM_BITS_PER_KEY, block_based=False)
    options = _basic_options(settings, blocks)
    if table is not Table.SEGMENTS:  # of which those that are new are asked for in another table
        options.set_memtable_prefix_bloom_ratio(_MEMTABLE_BLOOM_RATIO)
        options.set_memtable_whole_key_filtering(True)
    return options


def merge_options(*, much_is_written: bool) -> Mapping[Table, Mapping[str, str]]:
    """What to change, by RocksDB's names, when much is about to be written and when it was."""
    first_level_bytes = _FIRST_LEVEL_BYTES_MEANWHILE if much_is_written else _FIRST_LEVEL_BYTES
    return {
        table: {
            "level0_file_num_compaction_trigger": str(
                unmerged_files if much_is_written else _UNMERGED_FILES
            ),
            "max_bytes_for_level_base": str(first_level_bytes),
        }
        for table, unmerged_files in _UNMERGED_FILES_MEANWHILE.items()
    }


def _block_options(cache: Cache) -> BlockBasedOptions:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(cache)
    blocks.set_cache_index_and_filter_blocks(True)
    # Whole ones are a megabyte for each file, which at a lookup would push each other out.
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
    # A look-up of what is not in the block cache unpacks a block or two.
    options.set_compression_type(DBCompressionType.lz4())
    options.set_level_zero_file_num_compaction_trigger(_UNMERGED_FILES)
    options.set_level_zero_slowdown_writes_trigger(_SLOW_DOWN_FILES)
    options.set_level_zero_stop_writes_trigger(_STOP_FILES)
    options.set_max_bytes_for_level_base(_FIRST_LEVEL_BYTES)
    return options
