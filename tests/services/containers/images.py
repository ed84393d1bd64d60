"""The names of images of other projects.

docker-compose.yml has the images of the stack, and this module those that only tests use. Each name
is the default of an environment variable, such as KAFKA_IMAGE, that can name another image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_COMPOSE_FILE = Path(__file__).resolve().parents[3] / "docker-compose.yml"
_DEFAULT = re.compile(r"\$\{(\w+_IMAGE):-([^}]+)\}")
KAFKA = "KAFKA_IMAGE"
STORE = "STORE_IMAGE"
PROMETHEUS = "PROMETHEUS_IMAGE"
AZURITE = "AZURITE_IMAGE"
FAKE_GCS = "FAKE_GCS_IMAGE"
HADOOP = "HADOOP_IMAGE"
IMAGES_OF_TESTS = {
    AZURITE: "mcr.microsoft.com/azure-storage/azurite:3.35.0",
    FAKE_GCS: "docker.io/fsouza/fake-gcs-server:1.56.1",
    HADOOP: "docker.io/apache/hadoop:3.4.1",
}


def default_image(variable: str) -> str:
    """Return the name of the image that tests use unless the variable is set."""
    of_stack: dict[str, str] = dict(_DEFAULT.findall(_COMPOSE_FILE.read_text()))
    return (of_stack | IMAGES_OF_TESTS)[variable]


def image(variable: str, environment: Mapping[str, str]) -> str:
    """Return the name of the image that the environment names, else the default."""
    return environment.get(variable) or default_image(variable)
