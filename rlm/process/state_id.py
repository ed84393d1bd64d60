"""Identify a state directory, to distinguish several processes of one broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from rlm.process.state_dir import unusable_state_dir, write_state
from rsm.segment.ids import id_from_text, id_to_text

_FILE = "id"


def state_id(directory: Path, new_id: Callable[[], UUID]) -> UUID:
    """Read the directory's id, or create it; it survives restarts.

    Raises InvalidConfigError if the directory cannot be used or the file is malformed.
    """
    path = directory / _FILE
    try:
        if not path.exists():
            write_state(path, id_to_text(new_id()))
        return id_from_text(path.read_text().strip())
    except OSError as error:
        raise unusable_state_dir(directory, error) from error
