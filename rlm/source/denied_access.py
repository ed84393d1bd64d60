"""Describes a refused access: the path that refuses it, its owner, and the user of this process."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Iterator, Mapping
from pathlib import Path


def denied_access(path: Path) -> Mapping[str, str]:
    """Return fields of an error: the path that refuses access, its owner, and this user.

    That path is `path`, or else its deepest parent that this user can look up. Ids come before
    names, as `id` prints them: a container does not know the names of its host's users.
    """
    refusing, found = next(_looked_up(path))
    return {
        "refused_by": str(refusing),
        "owner": _user_text(found.st_uid),
        "group": _group_text(found.st_gid),
        "mode": f"{found.st_mode & 0o7777:04o}",
        "user": _user_text(os.geteuid()),
    }


def _looked_up(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for each in (path, *path.absolute().parents):
        try:
            yield each, each.stat()
        except OSError:  # The path is absent, or this user cannot search its directory.
            continue


def _user_text(number: int) -> str:
    try:
        return f"{number}({pwd.getpwuid(number).pw_name})"
    except KeyError:
        return str(number)


def _group_text(number: int) -> str:
    try:
        return f"{number}({grp.getgrgid(number).gr_name})"
    except KeyError:
        return str(number)
