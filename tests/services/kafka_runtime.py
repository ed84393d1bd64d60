"""What a Kafka broker runs on: the jars, the JVM's flags, the class archive, a formatted directory.

`make setup` makes all of it below build/kafka, except `java`, which is on the PATH. Other versions
have their own directories (tests.services.kafka_versions).
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from tests.services.service import BUILD, Needs, installed, program


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRelease:
    """One version of Kafka; `home` has all that its brokers run on.

    Brokers of a version that needs ZooKeeper format their log dirs themselves.
    """

    home: Path
    needs_zookeeper: bool = False

    @property
    def jars(self) -> Path:
        """The directory of the jars."""
        return self.home / "jars"

    @property
    def class_archive(self) -> Path:
        """An archive of the classes that a start loads; without it, they come from the jars."""
        return self.home / "classes.jsa"

    @property
    def bootstrap_checkpoint(self) -> Path:
        """The features of a new cluster, which StorageTool writes to each log dir."""
        return self.home / "bootstrap.checkpoint"

    @property
    def needs(self) -> Needs:
        """The programs and files that a cluster of this version needs."""
        formatted = () if self.needs_zookeeper else (self.bootstrap_checkpoint,)
        return Needs(programs=("java",), installed=(self.jars, *formatted))


HOME = BUILD / "kafka"
USUAL = KafkaRelease(home=HOME)
NEEDS = USUAL.needs
_MEMORY = ("-Xms256m", "-Xmx256m")
# The JVM lives for seconds, too short for code of its second compiler.
SHORT_LIVED_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_STARTS_FAST = (*SHORT_LIVED_JVM, "-Xshare:auto", "-Xlog:disable")
_LOGS = "-Dorg.apache.logging.log4j.level=INFO"


def new_id() -> str:
    """Return a random id in Kafka's form: 22 characters of base64url, without a leading dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


def java_command(
    main_class: str,
    *arguments: str,
    flags: tuple[str, ...] = (),
    classes: tuple[Path, ...] = (),
    release: KafkaRelease = USUAL,
) -> list[str]:
    """Return the command that runs a class of the Kafka jars, or of directories of `classes`.

    Raises ServiceMissingError if Java or the jars are missing.
    """
    java = program("java")
    jars = sorted(Path(installed(release.jars)).glob("*.jar"))
    classes_of_starts = release.class_archive
    archive = (f"-XX:SharedArchiveFile={classes_of_starts}",) if classes_of_starts.exists() else ()
    class_path = os.pathsep.join(map(str, (*jars, *classes)))
    java_flags = (*_MEMORY, *_STARTS_FAST, *(flags or archive), _LOGS)
    return [java, *java_flags, "-cp", class_path, main_class, *arguments]


def run_tool(
    main_class: str,
    *arguments: str,
    flags: tuple[str, ...] = (),
    deadline_s: float = 60.0,
    release: KafkaRelease = USUAL,
) -> str:
    """Run one of Kafka's tools and return its output. Raises RuntimeError if it fails."""
    done = subprocess.run(
        java_command(main_class, *arguments, flags=flags, release=release),
        capture_output=True,
        text=True,
        timeout=deadline_s,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{main_class} exited {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def format_log_dir(
    log_dir: Path, *, cluster_id: str, node_id: int, release: KafkaRelease = USUAL
) -> None:
    """Make a log dir as StorageTool would, from its output for another directory.

    The checkpoint has the features that a cluster starts with, the same for all clusters;
    meta.properties has the ids. An existing directory stays unchanged.
    """
    checkpoint = installed(release.bootstrap_checkpoint)
    if (log_dir / "meta.properties").exists():
        return
    log_dir.mkdir(parents=True, exist_ok=True)
    shutil.copy(checkpoint, log_dir)
    (log_dir / "meta.properties").write_text(
        f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={new_id()}\n"
    )
