"""Servers come from the provider, so that `--services` decides where they run."""

from __future__ import annotations

import re

from tests.architecture.tree import PROGRAMS, handwritten_files
from tests.services.provider import ServiceProvider

_SERVICES = "tests/services/"
_PROGRAM = "a program that starts processes, without pytest's options"
_MEASURED = "measures programs of this machine"
_OLDER = "runs versions of Kafka that make installs as programs"
_FLAGS = f"{_MEASURED}, with flags of their JVM"

MAY_MAKE_SERVERS = {
    "tests/e2e/test_kafka_acls.py": "reads in the log what images write to another file",
    "tests/e2e/kafka_versions/conftest.py": _OLDER,
    "tests/e2e/kafka_versions/test_leaders_move.py": _OLDER,
    "tests/e2e/kafka_versions/test_kafka_28.py": _OLDER,
    "tests/hosts/operated_cluster.py": "a launcher runs each broker in the namespaces of its host",
    "tests/chaos/__main__.py": _PROGRAM,
    "demo/stage.py": _PROGRAM,
    "bench/dataset.py": _FLAGS,
    "bench/gateway/kafka_tiering.py": _FLAGS,
    "bench/metadata/topic.py": _MEASURED,
    "bench/spark/__main__.py": _MEASURED,
    "bench/storage/stage.py": _MEASURED,
}


def test_servers_when_made_outside_the_services_then_by_files_that_need_processes() -> None:
    provided = {
        getattr(ServiceProvider, name).__annotations__["return"]
        for name in ServiceProvider.__abstractmethods__
    }
    construction = re.compile(rf"\b(?:{'|'.join(provided | {'KafkaBroker'})})\(")

    makers = {
        file.name
        for file in handwritten_files(*PROGRAMS, "tests")
        if not file.name.startswith(_SERVICES) and construction.search(file.text)
    }
    assert makers == MAY_MAKE_SERVERS.keys()
