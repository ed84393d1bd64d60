"""The commands of the README's first quick start, and clones of this checkout to run them in."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.tree import CHECKOUT, repository_files
from tests.services.process import ServiceProcess
from tests.services.service import BUILD

_SECTION = re.compile(r"^## Try it\n(.*?)^## ", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"(?:^    .*\n)+", re.MULTILINE)
_SHOWN_LINE = re.compile(r"`([^`]+)` [^`]*ends with a line such as\n\n    (.+)\n")
_SHOWN_TEXT = re.compile(r"`([^`]+)` [^`]*ends with `([^`]+)`")
_NUMBER = re.compile(r"\d+")
_DURATION = re.compile(r"(?<=seconds=)\d+")
_TOLERANCE = 0.1
# Variables that make and pytest set for their processes, and a user's shell does not have.
_UNSET = (
    *("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"),
    *("PYTHONPATH", "PYTHONPYCACHEPREFIX", "NUMBA_CACHE_DIR", "MPLCONFIGDIR"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickStart:
    """Commands in their order, and the last lines that the README shows for some of them."""

    commands: Sequence[str]
    endings: Mapping[str, str]

    def is_ending(self, command: str, line: str) -> bool:
        """Return whether a command's last line is the README's; True if the README shows none.

        "…" fits any text, and a duration fits any number. Other numbers may differ by a tenth;
        those that are equal in the README must be equal.
        """
        expected = self.endings.get(command)
        if expected is None:
            return True
        pattern = ".*".join(map(_without_numbers, expected.split("…")))
        pairs = list(zip(_numbers(expected), _numbers(line), strict=False))
        return (
            re.fullmatch(pattern, line) is not None
            and all(abs(found - number) <= _TOLERANCE * number for number, found in pairs)
            and len(set(pairs)) == len({number for number, _ in pairs})
        )


def quick_start(page: str) -> QuickStart:
    """Return the first block of commands below "Try it"; AssertionError if there is none."""
    section = _SECTION.search(page)
    assert section, "the README has no section 'Try it'"
    block = _BLOCK.search(section[1])
    assert block, "the README has no commands below 'Try it'"
    commands = [line.partition("#")[0].strip() for line in block[0].splitlines()]
    shown = [*_SHOWN_LINE.findall(section[1]), *_SHOWN_TEXT.findall(section[1])]
    return QuickStart(commands=commands, endings=dict(shown))


def clone_of_checkout(directory: Path) -> Path:
    """Clone the last commit; if the checkout has no git repository, copy its files."""
    clone = directory / "clone"
    if (CHECKOUT / ".git").exists():
        command = ("git", "clone", "--quiet", "--depth=1", CHECKOUT.as_uri(), str(clone))
        subprocess.run(command, check=True, timeout=60.0)
        return clone
    for file in repository_files():
        target = clone / file.relative_to(CHECKOUT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    return clone


def lend_installed(clone: Path) -> Mapping[str, str]:
    """Lend a clone the packages and the Kafka installed here; return its variables.

    `make` still makes the clone's own environment, checks each locked package in it, and installs
    the clone's `rlm`. It fetches and formats nothing.
    """
    packages = Path(sysconfig.get_path("purelib"))
    own = clone / ".venv" / packages.relative_to(sys.prefix)
    own.mkdir(parents=True)
    (own / "lent.pth").write_text(f"{packages}\n")
    build = clone / "build"
    (build / "stamps").mkdir(parents=True)
    (build / "kafka").symlink_to(BUILD / "kafka")
    for stamp in ("jars", "broker"):
        (build / "stamps" / stamp).touch()
    if sys.pycache_prefix:
        compiled = build / "pycache" / packages.relative_to("/")
        compiled.parent.mkdir(parents=True)
        compiled.symlink_to(Path(sys.pycache_prefix) / packages.relative_to("/"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return {"PYTHON": str(Path(sys.base_prefix) / "bin" / version)}


def run_in(
    clone: Path, command: str, *, deadline_s: float, variables: Mapping[str, str] | None = None
) -> str:
    """Run a command as a user's shell does; return its output. Raises AssertionError."""
    unset = (argument for name in _UNSET for argument in ("-u", name))
    process = ServiceProcess(
        ["env", *unset, "sh", "-c", command],
        log_path=clone.with_name("commands.log"),
        environment=variables,
        directory=clone,
    )
    try:
        code = process.wait(deadline_s=deadline_s)
    finally:
        process.kill(children=True)
    assert code == 0, f"{command}: {process.log_tail()}"
    return process.log_path.read_text()


def _without_numbers(text: str) -> str:
    return r"\d+".join(map(re.escape, _NUMBER.split(text)))


def _numbers(line: str) -> list[int]:
    return list(map(int, _NUMBER.findall(_DURATION.sub("", line))))
