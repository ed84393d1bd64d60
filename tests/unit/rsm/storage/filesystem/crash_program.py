"""Creates and deletes a chunk again and again, killed one system call later each time.

Its argument is the directory to work in. For each n it forks a child that kills itself with -9
before its n-th system call; each child has a separate root. Prints the number of killed children.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from pathlib import Path

from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.contract.sources import source_of

NAME = "topic/0/chunk.log"
CONTENT = (b"one" * 1000, b"two" * 1000)
ATTRIBUTES = {"role": "data"}
WATCHED = frozenset({"open", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.scandir"})


def kill_self_at(number: int) -> None:
    calls = count()

    def on_event(event: str, _arguments: object) -> None:
        if event in WATCHED and next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(on_event)


def create(storage: FilesystemChunkStorage) -> None:
    storage.create_with_content(NAME, source_of(*CONTENT), attributes=ATTRIBUTES)


def delete(storage: FilesystemChunkStorage) -> None:
    storage.delete(NAME)


def killed(root: Path, number: int, *, deletes: bool) -> bool:
    root.mkdir()
    storage = FilesystemChunkStorage(root)
    if deletes:
        create(storage)
    child = os.fork()
    if child == 0:
        kill_self_at(number)
        (delete if deletes else create)(storage)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main() -> None:
    directory = Path(sys.argv[1])
    deletes = sys.argv[2] == "delete"
    number = 0
    while killed(directory / str(number), number, deletes=deletes):
        number += 1
    sys.stdout.write(f"{number}\n")


if __name__ == "__main__":
    main()
