"""The filter of system calls that a systemd unit describes, set for a thread and its children."""

from __future__ import annotations

import ctypes
import errno
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.services.service import Needs, program

_ANALYZE = "systemd-analyze"
_ALLOW = 0x7FFF0000  # SCMP_ACT_ALLOW of seccomp.h
_REFUSE = 0x00050000  # SCMP_ACT_ERRNO, with the number in the lower half

NEEDS = Needs(programs=(_ANALYZE,))


def allowed_calls(unit: Path) -> frozenset[str]:
    """Return the calls that all lines `SystemCallFilter=` of a unit allow, read as by systemd.

    The first line must list allowed calls.
    """
    sets = _sets()
    allowed = set(_members("@default", sets))
    for line in re.findall(r"(?m)^SystemCallFilter=(.+)$", unit.read_text()):
        named = {call for word in line.lstrip("~").split() for call in _members(word, sets)}
        allowed = allowed - named if line.startswith("~") else allowed | named
    return frozenset(allowed)


def allow_only(calls: Iterable[str]) -> None:
    """Refuse all other calls with EPERM, for this thread and what it starts from now on."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_REFUSE | errno.EPERM)))
    for name in calls:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # a negative number: this architecture does not have the call
            added = library.seccomp_rule_add(context, ctypes.c_uint32(_ALLOW), number, 0)
            assert added == 0, (name, added)
    assert library.seccomp_load(context) == 0
    library.seccomp_release(context)


def filter_count(pid: int) -> int:
    """Return the number of filters that a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    (count,) = re.findall(r"(?m)^Seccomp_filters:\s+(\d+)$", status)
    return int(count)


def _sets() -> Mapping[str, tuple[str, ...]]:
    """Return the members of each set of calls that systemd knows: calls and other sets."""
    done = subprocess.run(
        [program(_ANALYZE), "syscall-filter", "--no-pager"],
        check=True,
        capture_output=True,
        text=True,
    )
    blocks = re.findall(r"(?m)^(@\S+)\n((?:    .+\n)+)", done.stdout)
    return {
        name: tuple(each for each in text.split("\n") if each.strip() and "#" not in each)
        for name, text in blocks
    }


def _members(word: str, sets: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    name = word.strip()
    if not name.startswith("@"):
        return [name]
    return [call for each in sets[name] for call in _members(each, sets)]
