"""A manager whose store does not delete objects with TEXT in their names: `--refuse TEXT`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rsm.segment.errors import RetriableError
from rsm.storage.chunk_storage import ChunkStorage, DeleteOutcome
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper
from tests.e2e.composition import run_changed_manager

REASON = "this object is locked"


class RefusingStorage(ChunkStorageWrapper):
    def __init__(self, inner: ChunkStorage, refused: str) -> None:
        super().__init__(inner)
        self._refused = refused

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        return tuple(self._delete_one(name) for name in names)

    def _delete_one(self, name: str) -> DeleteOutcome:
        if self._refused in name:
            return DeleteOutcome(name=name, error=RetriableError(REASON))
        (outcome,) = super().delete_many((name,))
        return outcome


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--refuse", required=True)
    options = parser.parse_args()
    run_changed_manager(
        options.config,
        lambda external: replace(
            external, storage=RefusingStorage(external.storage, options.refuse)
        ),
    )


if __name__ == "__main__":
    _main()
