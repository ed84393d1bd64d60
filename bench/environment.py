"""Describes what a benchmark runs on: the machine, the interpreter, Kafka, Java and the commit."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sysconfig
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from tests.services.kafka_runtime import HOME

_CHECKOUT = Path(__file__).resolve().parents[1]
_UNKNOWN = "unknown"
_ADDITIONS = 10_000_000
_PROBES = 3
# Files that a measurement writes do not change the measured code.
_WRITTEN_BY_MEASUREMENTS = (":!bench/results", ":!docs/performance.md", ":!docs/images")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Represents a machine: the processors that this process may use, its memory and system."""

    processors: int
    memory_mib: int
    system: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """Represents an interpreter: version, build options, and seconds for ten million additions."""

    version: str
    has_pgo: bool
    has_lto: bool
    additions_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Represents when and on what a benchmark ran; a commit with local changes ends with `+`."""

    date: str
    commit: str
    machine: Machine
    interpreter: Interpreter
    kafka: str
    java: str


def current_environment() -> Environment:
    """Describe this machine and checkout; measure the interpreter's speed in about two seconds."""
    configured_with = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    return Environment(
        date=datetime.now(UTC).date().isoformat(),
        commit=_commit(),
        machine=Machine(
            processors=len(os.sched_getaffinity(0)),
            memory_mib=psutil.virtual_memory().total >> 20,
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
        ),
        interpreter=Interpreter(
            version=f"{platform.python_implementation()} {platform.python_version()}",
            has_pgo="--enable-optimizations" in configured_with,
            has_lto="--with-lto" in configured_with,
            additions_s=round(min(_additions_s() for _ in range(_PROBES)), 3),
        ),
        kafka=_kafka_version(HOME / "jars"),
        java=java_version(_output("java", "-version")),
    )


def java_version(text: str) -> str:
    """Return the version in the output of `java -version`; "unknown" if it contains none."""
    found = re.search(r'version "([^"]+)"', text)
    return found[1] if found else _UNKNOWN


def _kafka_version(jars: Path) -> str:
    names = [path.stem for path in jars.glob("kafka-clients-*.jar")]
    return max(names).removeprefix("kafka-clients-") if names else _UNKNOWN


def _commit() -> str:
    commit = _output("git", "rev-parse", "HEAD").strip()
    if not re.fullmatch(r"[0-9a-f]{40,}", commit):
        return _UNKNOWN
    changes = _output("git", "status", "--porcelain", "--", ".", *_WRITTEN_BY_MEASUREMENTS)
    return f"{commit}+" if changes.strip() else commit


def _output(program: str, *arguments: str) -> str:
    """Return the output of a program; "" if the program is not installed."""
    if shutil.which(program) is None:
        return ""
    done = subprocess.run(
        [program, *arguments],
        cwd=_CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def _additions_s() -> float:
    total, started_s = 0, time.perf_counter()
    while total < _ADDITIONS:
        total += 1
    return time.perf_counter() - started_s
