"""The files of the compose stack: what they promise, and that they agree with each other."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlm.config.load import config_problems, load_config
from tests.containers.stand_ins.images import OF_OTHER_SERVICES, OF_THE_STACK
from tests.services.containers.images import IMAGES_OF_TESTS

_CHECKOUT = Path(__file__).resolve().parents[3]
_COMPOSE = yaml.safe_load((_CHECKOUT / "docker-compose.yml").read_text())
_SERVICES: dict[str, dict[str, Any]] = _COMPOSE["services"]
# Services that restart. The others are programs that end: Kafka's tools and a Spark job's driver.
_LASTING = sorted(name for name, each in _SERVICES.items() if each["restart"] != "no")
_OF_SPARK = sorted(each for each in _SERVICES if each.startswith("spark"))
_HOSTS = sorted(path.stem for path in (_CHECKOUT / "deploy" / "compose").glob("*.properties"))
_SERVER_VERSIONS = {"apache/kafka": ("tests/services/pom.xml", "<kafka.version>{}</kafka.version>")}
_SERVER_VERSIONS |= {"versity/versitygw": ("Makefile", "VERSITYGW_VERSION = {}")}
# Tests use this build of Prometheus if Debian's package is not installed. The Go module has major
# version 0: v3.16.0 is v0.316.0 there.
_SERVER_VERSIONS |= {"prom/prometheus:v3.": ("Makefile", "PROMETHEUS_VERSION = v0.3{}")}
_PROMETHEUS = _CHECKOUT / "deploy" / "prometheus"


def _yaml(path: Path) -> dict[str, Any]:
    described: dict[str, Any] = yaml.safe_load(path.read_text())
    return described


def _properties_path(service: str) -> Path:
    return _CHECKOUT / "deploy" / "compose" / f"{service}.properties"


@pytest.mark.parametrize("service", sorted(_SERVICES))
def test_service_when_described_then_has_limits_and_no_rights_of_root(service: str) -> None:
    described = _SERVICES[service]

    assert {"mem_limit", "cpus", "pids_limit", "restart"} <= described.keys()
    assert described["cap_drop"] == ["ALL"]
    assert described["security_opt"] == ["no-new-privileges:true"]


def test_services_when_they_restart_then_are_all_but_programs_that_end() -> None:
    assert _SERVICES.keys() - {*_LASTING} == {"client", "spark"}


@pytest.mark.parametrize("service", _LASTING)
def test_service_when_it_restarts_then_has_a_health_check_that_podman_understands(
    service: str,
) -> None:
    """Podman 4 splits the argument of any other form of check at spaces."""
    assert _SERVICES[service]["healthcheck"]["test"][0] == "CMD-SHELL"


@pytest.mark.parametrize("service", _HOSTS)
def test_rlm_when_described_then_cannot_write_its_root_or_the_brokers_log(service: str) -> None:
    described = _SERVICES[service]

    assert described["read_only"] is True
    log_volumes = [each for each in described["volumes"] if ":/var/lib/kafka/data" in each]
    assert len(log_volumes) == 1
    assert log_volumes[0].endswith(":ro")


@pytest.mark.parametrize("service", _HOSTS)
def test_memory_of_rlm_when_limited_then_is_what_the_page_about_sizing_requires(
    service: str,
) -> None:
    page = (_CHECKOUT / "docs" / "sizing.md").read_text()
    (least_gib,) = re.findall(r"set the limit to (\d+) GiB or more", page)

    assert _SERVICES[service]["mem_limit"] == f"{least_gib}g"


@pytest.mark.parametrize("service", sorted(each for each in _SERVICES if "broker" in each))
def test_broker_when_it_is_stopped_then_has_time_for_an_orderly_shutdown(service: str) -> None:
    assert _SERVICES[service]["stop_grace_period"] == "60s"


@pytest.mark.parametrize("service", _OF_SPARK)
def test_spark_when_described_then_cannot_write_its_root_and_java_can_load_libraries(
    service: str,
) -> None:
    described = _SERVICES[service]

    assert described["read_only"] is True
    assert described["tmpfs"] == ["/tmp:exec"]


def test_spark_jobs_when_they_run_then_driver_and_executors_share_store_and_directory() -> None:
    driver, worker = _SERVICES["spark"], _SERVICES["spark-worker"]

    assert driver["environment"] == worker["environment"] == _SERVICES["rlm-1"]["environment"]
    assert driver["secrets"] == worker["secrets"] == ["s3-credentials"]
    assert {"spark-data:/srv/spark"} <= {*driver["volumes"]} & {*worker["volumes"]}


def test_spark_jobs_when_they_run_then_fit_the_worker() -> None:
    text = (_CHECKOUT / "deploy" / "compose" / "spark-defaults.conf").read_text()
    settings = dict(re.findall(r"(?m)^(spark\.\S+) (.+)$", text))

    command = _SERVICES["spark-worker"]["command"]
    assert command[-1] == settings["spark.master"]
    assert command[command.index("--memory") + 1] == settings["spark.executor.memory"]


def test_profiles_when_chosen_then_compose_alone_starts_the_cluster_with_its_boards() -> None:
    """A service without a profile would start with each profile, also with quickstart."""
    profiles = {name: each.get("profiles", []) for name, each in _SERVICES.items()}
    (chosen,) = re.findall(r"(?m)^COMPOSE_PROFILES=(.+)$", (_CHECKOUT / ".env").read_text())

    assert [name for name, each in profiles.items() if len(each) != 1] == []
    started = {name for name, (each,) in profiles.items() if each in chosen.split(",")}
    of_cluster = {f"{role}-{n}" for role in ("broker", "rlm") for n in (1, 2, 3)}
    assert started == {*of_cluster, "store", "prometheus", "grafana"}


@pytest.mark.parametrize("service", _LASTING)
def test_service_when_its_profile_is_started_then_has_all_that_it_depends_on(service: str) -> None:
    described = _SERVICES[service]

    for needed in described.get("depends_on", ()):
        assert _SERVICES[needed]["profiles"] == described["profiles"]


def test_images_when_built_then_one_service_of_a_profile_builds_each_and_none_is_pulled() -> None:
    """Compose builds all services at once, and an engine refuses a second image of the same tag."""
    own = {name: each for name, each in _SERVICES.items() if "localhost/" in each["image"]}
    profiles = {
        (each["image"], *each.get("profiles", ())) for name, each in own.items() if name != "spark"
    }

    built = [(each["image"], *each.get("profiles", ())) for each in own.values() if "build" in each]
    assert sorted(built) == sorted(profiles)
    assert {each["pull_policy"] for each in own.values()} == {"never"}


@pytest.mark.parametrize("service", _HOSTS)
def test_configuration_when_loaded_then_fits_the_service(service: str) -> None:
    config = load_config(_properties_path(service))
    text = _properties_path(service).read_text()

    assert config_problems(_properties_path(service)) == ()
    (port,) = _SERVICES[service]["ports"]
    listener = port.rsplit(":", 1)[1]
    assert f"gateway.listener=0.0.0.0:{listener}\n" in text
    assert f"gateway.advertised.listener={service}:{listener}\n" in text
    assert [str(each) for each in config.host.log_dirs] == ["/var/lib/kafka/data"]


def test_configurations_when_compared_then_differ_in_the_gateways_lines_only() -> None:
    texts = [_properties_path(f"rlm-{number}").read_text() for number in (1, 2, 3)]

    of_all = {re.sub(r"(?m)^gateway\..*\n|^# For the rlm.*\n", "", text) for text in texts}
    assert len(of_all) == 1


def test_stand_ins_when_named_then_are_the_images_that_are_used() -> None:
    """Grafana has no stand-in, because no package registry has it."""
    services = [each for name, each in _SERVICES.items() if name != "grafana"]
    texts = [(_CHECKOUT / "Dockerfile").read_text(), *(each["image"] for each in services)]

    used = {name for text in texts for name in re.findall(r"docker\.io/[\w./:-]+", text)}
    assert {each.name for each in OF_THE_STACK} == used
    others = {each.name for each in OF_OTHER_SERVICES}
    assert others == set(IMAGES_OF_TESTS.values()) - used


@pytest.mark.parametrize(
    "service", sorted(each for each in _SERVICES if "ports" in _SERVICES[each])
)
def test_port_when_published_then_only_this_machine_reaches_it_by_default(service: str) -> None:
    for port in _SERVICES[service]["ports"]:
        assert port.startswith(("127.0.0.1:", "${BIND_ADDRESS:-127.0.0.1}:"))


def test_prometheus_when_it_scrapes_then_reads_every_rlm_and_the_rules() -> None:
    described = _yaml(_PROMETHEUS / "prometheus.yml")

    (targets,) = described["scrape_configs"][0]["static_configs"]
    assert targets["targets"] == [f"{each}:9464" for each in _HOSTS if each.startswith("rlm-")]
    (rules,) = described["rule_files"]
    assert f"./deploy/prometheus/alerts.yml:{rules}:ro,z" in _SERVICES["prometheus"]["volumes"]


def test_grafana_when_provisioned_then_finds_its_source_and_its_boards() -> None:
    provisioning = _CHECKOUT / "deploy" / "grafana" / "provisioning"
    (source,) = _yaml(provisioning / "datasources" / "prometheus.yml")["datasources"]
    (provider,) = _yaml(provisioning / "dashboards" / "rlm.yml")["providers"]
    volumes = _SERVICES["grafana"]["volumes"]

    assert source["url"] == "http://prometheus:9090"
    assert f"./deploy/grafana/dashboards:{provider['options']['path']}:ro,z" in volumes
    home = _SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    directory, _, name = home.rpartition("/")
    assert directory == provider["options"]["path"]
    assert (_CHECKOUT / "deploy" / "grafana" / "dashboards" / name).exists()


@pytest.mark.parametrize("service", sorted(each for each in _SERVICES if "cpus" in _SERVICES[each]))
def test_processors_when_limited_then_a_machine_with_one_processor_can_start_the_service(
    service: str,
) -> None:
    """Docker refuses a limit above the number of processors."""
    assert _SERVICES[service]["cpus"] in {"${CPUS:-1}", "${CPUS:-2}"}


def test_files_of_the_checkout_when_mounted_then_are_read_only_and_shared_under_selinux() -> None:
    mounted = [
        volume
        for service in _SERVICES.values()
        for volume in service.get("volumes", ())
        if volume.startswith(".")
    ]

    assert mounted
    assert {each for each in mounted if not each.endswith(":ro,z")} == set()


@pytest.mark.parametrize("image", _SERVER_VERSIONS)
def test_image_of_a_server_when_used_then_has_the_version_that_the_checkout_names(
    image: str,
) -> None:
    path, pattern = _SERVER_VERSIONS[image]
    found = re.search(rf"{image}:?([\w.]+)", (_CHECKOUT / "docker-compose.yml").read_text())

    assert found is not None
    assert pattern.format(found[1]) in (_CHECKOUT / path).read_text()


def test_image_when_its_health_is_checked_then_at_the_port_of_the_documented_listeners() -> None:
    dockerfile = (_CHECKOUT / "Dockerfile").read_text()
    (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)/healthz", dockerfile)

    docs = _CHECKOUT / "docs"
    assert f"`rest.listener=0.0.0.0:{port}`" in (docs / "gateway.md").read_text()
    for listener in ("metrics", "rest"):
        assert f"`{listener}.listener=0.0.0.0:{port}`" in (docs / "deployment.md").read_text()


@pytest.mark.parametrize("lock", ["image", "spark", "pyspark"])
def test_requirements_of_an_image_when_locked_then_are_those_that_tests_use(lock: str) -> None:
    of_image, of_tests = (
        set(re.findall(r"(?m)^\S+==\S+", (_CHECKOUT / f"requirements-{name}.txt").read_text()))
        for name in (lock, "dev")
    )

    assert of_image
    assert of_image <= of_tests


def test_image_of_spark_when_built_then_its_connector_is_of_its_version() -> None:
    lock = (_CHECKOUT / "requirements-pyspark.txt").read_text()
    connector = (_CHECKOUT / "spark_tools" / "connector.xml").read_text()

    (version,) = re.findall(r"(?m)^pyspark==(\S+)", lock)
    assert f"<spark.version>{version}</spark.version>" in connector


@pytest.mark.parametrize(("status", "is_healthy"), [(200, True), (503, False), (None, True)])
def test_image_when_its_health_is_checked_then_fails_only_if_something_answers_badly(
    status: int | None, *, is_healthy: bool
) -> None:
    """Without metrics.listener nothing listens, and the process may work well."""
    (command,) = re.findall(r'CMD python3 -c "(.+)"', (_CHECKOUT / "Dockerfile").read_text())

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status or 200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep the output of the tests clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        port = server.server_port
        if status is None:
            server.server_close()
        else:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        checked = subprocess.run(
            [sys.executable, "-c", command.replace("9464", str(port))],
            capture_output=True,
            check=False,
        )
        if status is not None:
            server.shutdown()
    assert (checked.returncode == 0) is is_healthy
