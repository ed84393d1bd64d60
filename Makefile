# Everything that is installed or built stays below .venv/ and build/.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup check test test-long test-kafka-versions test-spark-oldest examples fuzz sim explore mutants chaos kills hosts readme demo bench bench-gateway \
	bench-metadata bench-spark bench-storage bench-streaming performance plots images up down test-alerts test-containers test-services containers-here \
	containers-end wheels sbom spark-zip spark-env proto dashboards golden docs released-state lock clean static services images-of-tests

PYTHON ?= python3
BIN := .venv/bin
STAMPS := build/stamps
KAFKA := build/kafka
HADOOP := build/hadoop
KAFKA_TIERING := build/kafka-tiering
KAFKA_VERSION = $(shell sed -n 's|.*<kafka.version>\(.*\)</.*|\1|p' tests/services/pom.xml)
OLDER_KAFKA_VERSIONS := $(shell sed -n 's|.*<kafka.older.versions>\(.*\)</.*|\1|p' tests/services/pom.xml)
OLDER_KAFKA := build/kafka-versions
VERSIONS ?= $(OLDER_KAFKA_VERSIONS) $(KAFKA_VERSION)
CLIENTS := build/clients
SPARK_ENVIRONMENT := build/spark/environment.tar.gz
SPARK_OLDEST := build/spark-oldest
SPARK_OLDEST_VERSION = 4.0.0
LAKES_OF_SPARK_OLDEST = -Ddelta.artifact=delta-spark_2.13 -Ddelta.version=4.0.0 \
	-Diceberg.artifact=iceberg-spark-runtime-4.0_2.13 -Diceberg.version=1.11.0
AZURITE_VERSION = 3.35.0
FAKE_GCS_VERSION = v1.56.1
VERSITYGW_VERSION = v1.8.0
PROMETHEUS_VERSION = v0.316.0
# The newest that runs on Java 17.
APICURIO_VERSION = 2.6.13.Final
AIRFLOW_VERSION = 3.3.2
NBCLIENT_VERSION = 0.11.0
IPYKERNEL_VERSION = 7.4.0
PLATFORMS_OF_IMAGES := x86_64 aarch64
LOCKS_OF_IMAGES := requirements.txt requirements-image.txt requirements-spark.txt
WHEELS := build/wheels
SBOM := build/sbom
GO_READER := $(wildcard tests/clients/go/*)
JAVA_READER := $(wildcard tests/clients/java/*.java)
OURS := $(wildcard rlm rsm rlmm spark_tools tests demo bench deploy)
JOB_SOURCES := $(shell find rlm rsm rlmm spark_tools -name '*.py') spark_tools/spark/log4j2.properties
PROTOS := $(shell find rlm rsm rlmm -name '*.proto' | sort)
# Setuptools warns at length about editable installations. pip compiles no modules, because most of
# the installed ones are never imported.
PIP := PYTHONWARNINGS=ignore $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile
# Mavens run one after the other, because two at once can spoil each other's downloads.
MVN := $(if $(shell command -v flock),flock Makefile) mvn -q -B -Dstyle.color=never
# Without this option, pytest starts services in containers if an engine answers.
PYTEST := $(BIN)/python -m pytest --services=processes
# Tests sync many small files: they use /dev/shm if it is large enough and programs may run there.
IN_MEMORY := $(shell [ -z "$$TMPDIR" ] && [ -w /dev/shm ] && ! grep -q ' /dev/shm .*noexec' /proc/mounts \
	&& [ "$$(df --output=avail -m /dev/shm | tail -n 1)" -gt 2000 ] && echo TMPDIR=/dev/shm)
# Processes for the tests without services, and for all tests. 0 runs the tests in one process. Of
# three or more, the last one has a lower priority and first runs the tests that need no services.
# Brokers that wait too long for a processor elect new leaders: raise the numbers only with more processors.
CHECK_WORKERS ?= 3
TEST_WORKERS ?= 3
# At most this many failed tests with services are repeated, and listed if they then pass. For the tests
# of containers the limit is one, because a repetition starts the stack again.
REPEAT ?= 0
WITH_CONTAINERS = $(filter-out 0,$(CONTAINERS))
CONTAINERS ?= 1
# make looks for these before it installs anything, and the tests look again (tests/run_needs.py).
PROGRAMS_OF_TESTS := $(PYTHON) java javac mvn go npm node openssl ip unshare nsenter mount systemd-analyze
# Stamps, and the directories without which they do not count.
INSTALLED := jars:kafka broker:kafka versitygw:versitygw fake-gcs:fake-gcs azurite:azurite \
	prometheus:prometheus reader-go:clients reader-java:clients hadoop:hadoop spark-jars:spark-jars lake-jars:lake-jars \
	schema-registry:schema-registry kafka-tiering:kafka-tiering \
	$(foreach each,$(OLDER_KAFKA_VERSIONS),kafka-$(each):kafka-versions/$(each))
MAVEN_STAMPS := $(addprefix $(STAMPS)/,jars spark-jars lake-jars hadoop kafka-tiering schema-registry \
	$(addprefix kafka-,$(OLDER_KAFKA_VERSIONS)))
PIP_COMPILE := CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --generate-hashes \
	--strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --no-emit-options $(if $(UPGRADE),--upgrade)

# Compiled modules are kept, whatever the environment says: hundreds of short processes load them.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache
export NUMBA_CACHE_DIR := $(CURDIR)/build/numba
export MPLCONFIGDIR := $(CURDIR)/build/matplotlib

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMPS)/broker ## Install rlm and an Apache Kafka to try it with, below the checkout

check: $(STAMPS)/dev ## Format, lint, types, layers, and the unit and contract tests
	$(IN_MEMORY) $(PYTEST) -q -n $(CHECK_WORKERS) -o tmp_path_retention_policy=failed --checks "make --no-print-directory static" \
		--hypothesis-profile=few tests/architecture tests/unit tests/contract

# The tests of containers run after all others, whose clusters would get too little of the processors
# next to theirs. Their images are made ready before.
test: services ## The static checks and all tests but the long ones (CONTAINERS=0: none of containers)
	$(PYTEST) -q -n $(TEST_WORKERS) --checks "nice -n 10 make --no-print-directory static $(if $(WITH_CONTAINERS),images-of-tests)" \
		--repeat=$(REPEAT) --ignore=tests/containers tests
	$(if $(WITH_CONTAINERS),$(PYTEST) -v -n 0 --repeat=$(if $(filter-out 0,$(REPEAT)),1,0) tests/containers)

# If this fails, the tests of containers report the same.
images-of-tests: $(STAMPS)/dev
	-@$(BIN)/python -m tests.containers.availability >/dev/null

services: ## Install all that the tests start: stores, clients, Spark's connector
	@missing=; for each in $(PROGRAMS_OF_TESTS); do \
		command -v $$each >/dev/null || missing="$$missing $$each"; done; \
		[ -z "$$missing" ] || { echo "cannot install the services of tests: not on the PATH:$$missing." \
			"Install them." >&2; exit 1; }
	@for each in $(INSTALLED); do \
		[ -d build/$${each#*:} ] || rm -f $(STAMPS)/$${each%:*}; done
	@$(MAKE) --no-print-directory -j12 $(STAMPS)/dev $(MAVEN_STAMPS) $(SPARK_ENVIRONMENT) \
		$(addprefix $(STAMPS)/,broker reader-java versitygw fake-gcs azurite reader-go prometheus)

test-long: $(STAMPS)/dev $(STAMPS)/broker ## The tests with random data, with 80 times as much data (some hours)
	$(PYTEST) -q -n 2 --hypothesis-profile=long --timeout=0 tests/unit tests/contract \
		tests/integration/rlm/wire

test-kafka-versions: $(STAMPS)/dev $(STAMPS)/broker $(addprefix $(STAMPS)/kafka-,$(filter-out $(KAFKA_VERSION),$(VERSIONS))) ## A tiered topic's life on each version of Kafka that rlm is tested on (VERSIONS="3.9.2 …")
	KAFKA_VERSIONS="$(VERSIONS)" $(PYTEST) -q -n 0 --long tests/e2e/kafka_versions

# The oldest Spark leaves sockets open, so the warnings about them are ignored.
test-spark-oldest: $(STAMPS)/dev $(STAMPS)/broker $(STAMPS)/versitygw $(STAMPS)/schema-registry $(STAMPS)/spark-oldest ## The Spark jobs' tests on the oldest Spark that they support
	PYTHONPATH=$(CURDIR)/$(SPARK_OLDEST)/packages SPARK_CONNECTOR=$(CURDIR)/$(SPARK_OLDEST)/jars \
		LAKE_JARS=$(CURDIR)/$(SPARK_OLDEST)/lake-jars \
		$(PYTEST) -q tests/integration/spark_tools \
		-W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning

examples: $(STAMPS)/dev $(STAMPS)/broker $(STAMPS)/spark-jars $(STAMPS)/airflow $(STAMPS)/jupyter ## The notebook by Jupyter and the DAG by Airflow, on the demo's data
	@$(BIN)/python -m tests.examples

fuzz: $(STAMPS)/dev ## The gateway's session between random clients and brokers, for some minutes
	$(PYTEST) -q --hypothesis-profile=long --timeout=0 tests/unit/rlm/gateway/session/test_session_fuzz.py

sim: $(STAMPS)/dev ## Random crashes, elections and faults in memory (SEEDS=100000 FIRST=0 JSON=1, or SEED=7 STEPS=60)
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(FIRST),--first $(FIRST)) $(if $(STEPS),--steps $(STEPS)) $(if $(JSON),--json)

explore: $(STAMPS)/dev ## Every interleaving of small scopes (LARGE=1, SCOPE=claims WITHOUT=… SCHEDULE=0x3,1)
	@$(BIN)/python -m tests.simulation.exploration $(if $(SCOPE),--scope $(SCOPE)) \
		$(if $(SCHEDULE),--schedule $(SCHEDULE)) $(if $(WITHOUT),--without $(WITHOUT)) \
		$(if $(LARGE),--large) $(if $(JSON),--json)

mutants: $(STAMPS)/dev ## Change deciding code, count what tests notice (SEED=1 PER_GROUP=100 ONLY="plan" ALL=1 OUT=FILE)
	@$(BIN)/python -m tests.mutation $(if $(SEED),--seed $(SEED)) \
		$(if $(PER_GROUP),--per-group $(PER_GROUP)) $(if $(ALL),--all) \
		$(if $(ONLY),--only $(ONLY)) $(if $(OUT),--out $(OUT))

chaos: $(STAMPS)/dev $(STAMPS)/broker ## Kill and freeze real brokers and hosts while producers write (MINUTES=10 SEED=1)
	@$(BIN)/python -m tests.chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

kills: $(STAMPS)/dev $(STAMPS)/broker ## kill -9 in each phase of a copied and of a streamed segment's life (half an hour)
	$(PYTEST) -q -n 0 --long tests/e2e/test_*_killed*.py

hosts: $(STAMPS)/dev $(STAMPS)/broker ## The tests on several hosts (network namespaces), the long ones too
	$(PYTEST) -q -n 0 --long tests/hosts

readme: $(STAMPS)/dev $(STAMPS)/broker ## Follow the README's first commands in an empty clone that installs everything (an hour)
	$(PYTEST) -q -n 0 --long -o tmp_path_retention_policy=failed tests/e2e/test_readme.py

images: ## Build the image of rlm, and print its layers (SPARK=1: also that of the Spark jobs)
	@deploy/stack.sh images

up: ## Start the compose stack: three brokers, a store, three rlm (SERVICES=quickstart|streaming MONITORING=1 SPARK=1)
	@deploy/stack.sh up $(SERVICES)

down: ## End the compose stack (VOLUMES=1: delete its data, too)
	@deploy/stack.sh down $(if $(VOLUMES),--volumes)

test-containers: $(STAMPS)/dev $(addprefix $(STAMPS)/,jars versitygw prometheus azurite fake-gcs hadoop) ## The tests of the compose stack, the long ones too; as root on Debian they set up an engine
	$(PYTEST) -v -n 0 --long tests/containers

test-services: services ## Tests of stores and brokers whose services run in containers
	$(PYTEST) -q -n 0 --services=containers tests/integration/test_kafka_service.py \
		tests/integration/test_s3_service.py tests/integration/test_segment_formats.py \
		$(foreach store,s3 azure gcs hdfs,tests/integration/rsm/storage/test_$(store)*.py) \
		tests/integration/rlm/broker tests/integration/rlm/wire/test_secured_listeners.py \
		tests/integration/rlmm tests/e2e/test_s3.py

test-alerts: $(STAMPS)/dev $(STAMPS)/prometheus ## The tests of rules and dashboards, with a real Prometheus
	$(PYTEST) -q -n 0 tests/unit/deploy/test_alerts.py tests/unit/deploy/test_dashboards.py tests/integration/deploy

containers-here: $(STAMPS)/dev $(addprefix $(STAMPS)/,jars versitygw prometheus azurite fake-gcs hadoop) ## Install Podman and stand-ins for official images, if no registry is reachable
	@$(BIN)/python -m tests.containers.local_engine up

containers-end: ## End what make containers-here started, and all its containers
	@[ ! -d build/containers ] || $(BIN)/python -m tests.containers.local_engine down

# Spark itself is pure Python without a wheel; the image's build makes one.
wheels: $(STAMPS)/dev ## Check that every package of the images, but Spark, has a wheel for amd64 and arm64
	@mkdir -p $(WHEELS)
	@awk '/^[^ ]/ { kept = /^[a-z]/ && !/^pyspark==/ } kept' requirements-pyspark.txt >$(WHEELS)/pyspark-needs.txt
	@for each in $(PLATFORMS_OF_IMAGES); do \
		for lock in $(LOCKS_OF_IMAGES) $(WHEELS)/pyspark-needs.txt; do \
			$(BIN)/python -m pip --disable-pip-version-check download --quiet --no-deps --require-hashes \
				--only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 --abi abi3 --abi none \
				$(foreach glibc,2_17 2_28 2_34 2014,--platform $(if $(findstring _,$(glibc)),manylinux_$(glibc)_$$each,manylinux$(glibc)_$$each)) \
				--dest $(WHEELS)/$$each -r $$lock || exit 1; \
		done; \
		echo "wheels: $$(ls $(WHEELS)/$$each | wc -l) for linux $$each"; done

# The packages of the image of rlm are among those of Spark's environment.
sbom: $(STAMPS)/dev $(STAMPS)/spark-jars ## Write bills of materials (CycloneDX) to build/sbom (IMAGES="rlm spark": with the Debian packages of these images)
	@mkdir -p $(SBOM)
	@cat requirements-spark.txt requirements-pyspark.txt >$(SBOM)/requirements-spark-image.txt
	@for each in wheel:requirements.txt image:requirements-image.txt spark:requirements-spark.txt \
		spark-image:$(SBOM)/requirements-spark-image.txt; do \
		$(BIN)/python -W ignore -m cyclonedx_py requirements $${each#*:} --pyproject pyproject.toml \
			--mc-type application --output-reproducible --of JSON -o $(SBOM)/$${each%%:*}.cdx.json || exit 1; \
	done
	@$(BIN)/python -m deploy.java_components $(SBOM)/spark-image.cdx.json --pom spark_tools/connector.xml \
		--jars build/spark-jars
	@for each in $(IMAGES); do \
		deploy/stack.sh packages $$each >$(SBOM)/$$each.packages && $(BIN)/python -m deploy.debian_components \
			$(SBOM)/$$(echo $$each | sed 's/^rlm$$/image/; s/^spark$$/spark-image/').cdx.json <$(SBOM)/$$each.packages || exit 1; \
	done
	@for each in $(SBOM)/*.cdx.json; do echo "made $$each"; done

demo: setup ## Tier, trim and read back a topic of a real broker (STREAM=1: lose the broker; KEEP=1: leave all running)
	@$(BIN)/python -m demo $(if $(STREAM),--stream) $(if $(KEEP),--keep)

bench: $(STAMPS)/dev $(STAMPS)/broker ## Measure against peers in the same run (OUT=FILE: write JSON too)
	@$(BIN)/python -m bench $(if $(OUT),--out $(OUT))

bench-gateway: $(STAMPS)/dev $(STAMPS)/broker $(STAMPS)/kafka-tiering ## Measure the gateway (OUT=FILE, ONLY="NAME …", SHORT=1)
	@$(BIN)/python -m bench.gateway $(if $(OUT),--out $(OUT)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(SHORT),--short)

bench-metadata: $(STAMPS)/dev $(STAMPS)/broker ## Measure the metadata side (SEGMENTS="10000 …" OUT=FILE)
	@$(BIN)/python -m bench.metadata $(if $(OUT),--out $(OUT)) \
		$(if $(SEGMENTS),--segments $(SEGMENTS))

bench-storage: $(STAMPS)/dev $(STAMPS)/versitygw ## Compare the S3 store with plain clients (OUT=FILE, SHORT=1)
	@$(BIN)/python -m bench.storage $(if $(OUT),--out $(OUT)) $(if $(SHORT),--short)

bench-streaming: $(STAMPS)/dev $(STAMPS)/broker $(STAMPS)/versitygw ## Compare streams with copies of segments (OUT=FILE, SHORT=1)
	@$(BIN)/python -m bench.streaming $(if $(OUT),--out $(OUT)) $(if $(SHORT),--short)

bench-spark: $(STAMPS)/dev $(STAMPS)/broker $(STAMPS)/versitygw $(STAMPS)/spark-jars ## Measure the Spark jobs (OUT=FILE, ONLY="NAME …", SHORT=1)
	@$(BIN)/python -m bench.spark $(if $(OUT),--out $(OUT)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(SHORT),--short)

plots: $(STAMPS)/dev ## Draw the pictures of docs/performance.md from bench/results
	@$(BIN)/python -m bench.report.plots

performance: plots ## Write docs/performance.md from bench/results
	@$(BIN)/python -m bench.report

spark-zip: $(STAMPS)/dev ## Make build/spark for spark-submit: the modules of rlm, and a file per job
	@mkdir -p build/spark
	@cd $(CURDIR) && $(BIN)/python -m zipfile -c build/spark/kafka-rlm.zip rlm rlmm rsm spark_tools
	@cp spark_tools/submit/rlm_*.py build/spark
	@echo "made build/spark/kafka-rlm.zip and $$(cd build/spark && echo rlm_*.py)"

spark-env: $(SPARK_ENVIRONMENT) ## Make build/spark for spark-submit: rlm with its dependencies, and a file per job
	@cp spark_tools/submit/rlm_*.py build/spark
	@echo "made $(SPARK_ENVIRONMENT) and $$(cd build/spark && echo rlm_*.py)"

proto: $(STAMPS)/dev ## Generate the protobuf modules next to their .proto files
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. $(PROTOS)

dashboards: $(STAMPS)/dev ## Write the dashboards of Grafana in deploy/grafana/dashboards
	$(BIN)/python -W ignore::DeprecationWarning -m deploy.grafana

golden: $(STAMPS)/dev ## Generate the golden texts of commands again, to review the difference
	REGENERATE=1 $(PYTEST) -q -n 0 tests/unit/rlm/cli tests/unit/spark_tools/invocation

docs: $(STAMPS)/product ## Generate the reference pages and the schema in docs
	$(BIN)/python -m rlm.config.reference > docs/config.md
	$(BIN)/python -m rlm.app.metrics_reference > docs/metrics.md
	$(BIN)/python -m rlm.cli.reference > docs/cli.md
	$(BIN)/python -m rlm.cli.json_reference > docs/json.md
	$(BIN)/python -m rlm.cli.policies_schema > docs/policies.schema.json
	$(BIN)/python -m rlm.app.http_reference > docs/http.md
	$(BIN)/python -m spark_tools.reference > docs/spark-jobs.md

released-state: $(STAMPS)/dev ## Keep what this version leaves on disk as fixtures (FORCE=1: replace it)
	@$(BIN)/python -m tests.released_states $(if $(FORCE),--force)

lock: $(STAMPS)/dev ## Pin the dependencies in requirements*.txt again (UPGRADE=1: to the newest), and check their wheels
	$(PIP_COMPILE) --build-deps-for editable -o requirements.txt pyproject.toml
	$(PIP_COMPILE) --extra dev --extra plots --extra schemas --extra spark -c requirements.txt -o requirements-dev.txt pyproject.toml
	$(PIP_COMPILE) --extra spark --extra schemas --extra s3 --extra azure --extra gcs -c requirements-dev.txt \
		--no-allow-unsafe --unsafe-package pyspark --unsafe-package py4j \
		-o requirements-spark.txt pyproject.toml
	$(PIP_COMPILE) --extra s3 --extra azure --extra gcs -c requirements-dev.txt --no-allow-unsafe \
		-o requirements-image.txt pyproject.toml
	echo pyspark | $(PIP_COMPILE) -c requirements-dev.txt -o requirements-pyspark.txt -
	@$(MAKE) --no-print-directory wheels

clean: containers-end ## Remove what was installed and built
	rm -rf .venv build dist *.egg-info

static: $(STAMPS)/dev
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy --no-error-summary $(OURS)
	$(BIN)/lint-imports --cache-dir build/import-linter

# The environment is packed with its compiled modules: pip writes them there, not to build/pycache.
$(STAMPS)/spark-packages: requirements-spark.txt
	@echo "Installing what executors need into build/spark-env"
	@rm -rf build/spark-env
	@$(PYTHON) -m venv build/spark-env
	@env -u PYTHONPYCACHEPREFIX build/spark-env/bin/python -m pip --disable-pip-version-check \
		install --quiet --no-deps --require-hashes -r requirements-spark.txt
	@mkdir -p $(@D) && touch $@

$(SPARK_ENVIRONMENT): $(STAMPS)/spark-packages $(STAMPS)/dev $(JOB_SOURCES)
	@echo "Packing the environment of executors"
	@rm -rf build/lib build/spark/wheel && mkdir -p build/spark
	@$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation \
		--wheel-dir build/spark/wheel .
	@env -u PYTHONPYCACHEPREFIX build/spark-env/bin/python -m pip --disable-pip-version-check \
		install --quiet --no-deps --force-reinstall build/spark/wheel/*.whl
	@$(BIN)/venv-pack --quiet --force --compress-level 1 --prefix build/spark-env --output $@

# rlm as a user installs it: enough for the demo.
$(STAMPS)/product: requirements.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "cannot install rlm: $(PYTHON) is not on the PATH. Install it, or name" \
		"another one: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "cannot install rlm: $$($(PYTHON) --version) is too old. Name Python 3.11 or newer:" \
			"make PYTHON=python3.11" >&2; exit 1; }
	@echo "Installing rlm into .venv"
	@$(PYTHON) -m venv .venv
	@$(PIP) --require-hashes -r requirements.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@mkdir -p $(@D) && touch $@

# The packages that checks, tests and benchmarks also need, among them Spark.
$(STAMPS)/dev: requirements-dev.txt $(STAMPS)/product
	@echo "Installing the packages of tests and checks into .venv"
	@$(PIP) --require-hashes -r requirements-dev.txt
	@mkdir -p $(@D) && touch $@

$(STAMPS)/jars: tests/services/pom.xml
	@command -v java >/dev/null || { echo "cannot fetch Kafka: java is not on the PATH. Install Java 17 or newer." >&2; exit 1; }
	@command -v mvn >/dev/null || { echo "cannot fetch jars: mvn is not on the PATH. Install Maven." >&2; exit 1; }
	@echo "Fetching Kafka's jars into $(KAFKA)"
	@rm -rf $(KAFKA)
	@$(MVN) -f $< dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory=$(CURDIR)/$(KAFKA)/jars
	@mkdir -p $(@D) && touch $@

# What each start of a broker reuses: a formatted directory, an archive of loaded classes.
$(STAMPS)/broker: $(STAMPS)/jars $(STAMPS)/product
	@$(BIN)/python -m tests.services.kafka_setup
	@touch $@

# The same for other versions of Kafka, which only the tests of these versions use.
$(STAMPS)/kafka-%: tests/services/pom.xml $(STAMPS)/product
	@command -v mvn >/dev/null || { echo "cannot fetch jars: mvn is not on the PATH. Install Maven." >&2; exit 1; }
	@echo "Fetching the jars of Kafka $* into $(OLDER_KAFKA)/$*"
	@rm -rf $(OLDER_KAFKA)/$*
	@$(MVN) -f $< -P older -Dkafka.version=$* dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory=$(CURDIR)/$(OLDER_KAFKA)/$*/jars
	@$(BIN)/python -m tests.services.kafka_setup $*
	@touch $@

# The jars of `rlm-repair --jars build/spark-jars`.
$(STAMPS)/spark-jars: spark_tools/connector.xml
	@command -v mvn >/dev/null || { echo "cannot fetch jars: mvn is not on the PATH. Install Maven." >&2; exit 1; }
	@echo "Fetching Spark's Kafka connector into build/spark-jars"
	@rm -rf build/spark-jars
	@$(MVN) -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/build/spark-jars
	@mkdir -p $(@D) && touch $@

# Delta and Iceberg, for the tests of examples.
$(STAMPS)/lake-jars: tests/services/lakes/pom.xml
	@command -v mvn >/dev/null || { echo "cannot fetch jars: mvn is not on the PATH. Install Maven." >&2; exit 1; }
	@echo "Fetching Delta and Iceberg into build/lake-jars"
	@rm -rf build/lake-jars
	@$(MVN) -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/build/lake-jars
	@mkdir -p $(@D) && touch $@

# Tests put this Spark in front of the installed one on Python's path.
$(STAMPS)/spark-oldest: spark_tools/connector.xml tests/services/lakes/pom.xml $(STAMPS)/dev
	@echo "Fetching Spark $(SPARK_OLDEST_VERSION) and its Kafka connector into $(SPARK_OLDEST)"
	@rm -rf $(SPARK_OLDEST)
	@$(PIP) --target $(SPARK_OLDEST)/packages --no-deps pyspark==$(SPARK_OLDEST_VERSION) \
		$$(sed -n 's/^\(py4j==[0-9.]*\).*/\1/p' requirements-dev.txt)
	@$(MVN) -f $< -Dspark.version=$(SPARK_OLDEST_VERSION) dependency:copy-dependencies \
		-DoutputDirectory=$(CURDIR)/$(SPARK_OLDEST)/jars
	@$(MVN) -f tests/services/lakes/pom.xml $(LAKES_OF_SPARK_OLDEST) dependency:copy-dependencies \
		-DoutputDirectory=$(CURDIR)/$(SPARK_OLDEST)/lake-jars
	@mkdir -p $(@D) && touch $@

$(STAMPS)/hadoop: tests/services/hadoop/pom.xml
	@command -v mvn >/dev/null || { echo "cannot fetch jars: mvn is not on the PATH. Install Maven." >&2; exit 1; }
	@echo "Fetching the jars of Hadoop's mini cluster into $(HADOOP)"
	@rm -rf $(HADOOP)
	@$(MVN) -f $< dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory=$(CURDIR)/$(HADOOP)/jars
	@mkdir -p $(@D) && touch $@

# The readers are programs of the tests that run real clients.
$(STAMPS)/reader-go: $(GO_READER)
	@command -v go >/dev/null || { echo "cannot build a program of tests: go is not on the PATH. Install Go 1.26 or newer." >&2; exit 1; }
	@echo "Building the reader over franz-go"
	@go -C tests/clients/go build -o $(CURDIR)/$(CLIENTS)/reader-go .
	@mkdir -p $(@D) && touch $@

$(STAMPS)/reader-java: $(JAVA_READER) $(STAMPS)/jars
	@command -v javac >/dev/null || { echo "cannot build a reader: javac is not on the PATH. Install a JDK 17 or newer." >&2; exit 1; }
	@javac -d $(CLIENTS)/java -cp '$(KAFKA)/jars/*' --release 17 -Xlint:all -Werror $(JAVA_READER)
	@mkdir -p $(@D) && touch $@

# Apicurio Registry, which speaks Confluent's REST API, for the tests of decoded columns.
$(STAMPS)/schema-registry:
	@command -v mvn >/dev/null || { echo "cannot fetch jars: mvn is not on the PATH. Install Maven." >&2; exit 1; }
	@echo "Fetching Apicurio Registry into build/schema-registry"
	@rm -rf build/schema-registry
	@$(MVN) dependency:copy -DoutputDirectory=$(CURDIR)/build/schema-registry \
		-Dartifact=io.apicurio:apicurio-registry-app:$(APICURIO_VERSION):tar.gz:all
	@cd build/schema-registry && tar -xzf apicurio-registry-app-*.tar.gz && rm apicurio-registry-app-*.tar.gz
	@mkdir -p $(@D) && touch $@

# An S3 server, for the tests of that store and its benchmark.
$(STAMPS)/versitygw:
	@command -v go >/dev/null || { echo "cannot build a program of tests: go is not on the PATH. Install Go 1.26 or newer." >&2; exit 1; }
	@echo "Building versitygw, an S3 server"
	@GOBIN=$(CURDIR)/build/versitygw go install \
		github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION)
	@mkdir -p $(@D) && touch $@

# For the queries of dashboards and rules: Debian's package, unpacked here and not installed. Elsewhere the
# compose stack's version is built, without its service discoveries, which are half of its code.
$(STAMPS)/prometheus:
	@rm -rf build/prometheus && mkdir -p build/prometheus
	@cd build/prometheus && if apt-get -q download prometheus >/dev/null 2>&1; then \
		dpkg -x prometheus_*.deb . && mv usr/bin/prometheus usr/bin/promtool . && rm -rf etc lib usr var *.deb; \
	else \
		command -v go >/dev/null || { echo "cannot build a program of tests: go is not on the PATH. Install Go 1.26 or newer." >&2; exit 1; }; \
		echo "Building Prometheus"; \
		GOBIN=$(CURDIR)/build/prometheus go install -tags remove_all_sd \
			$(foreach each,prometheus promtool,github.com/prometheus/prometheus/cmd/$(each)@$(PROMETHEUS_VERSION)); \
	fi
	@mkdir -p $(@D) && touch $@

# Azure's own emulation of its Blob Storage, for the tests of that store.
$(STAMPS)/azurite:
	@command -v npm >/dev/null || { echo "cannot fetch Azurite: npm is not on the PATH. Install Node." >&2; exit 1; }
	@echo "Fetching Azurite, an Azure Blob Storage server"
	@npm install --silent --no-audit --no-fund --prefix build/azurite azurite@$(AZURITE_VERSION)
	@mkdir -p $(@D) && touch $@

# A stand-in for Google Cloud Storage, for the tests of that store.
$(STAMPS)/fake-gcs:
	@command -v go >/dev/null || { echo "cannot build a program of tests: go is not on the PATH. Install Go 1.26 or newer." >&2; exit 1; }
	@echo "Building fake-gcs-server, a stand-in for Google Cloud Storage"
	@GOBIN=$(CURDIR)/build/fake-gcs go install \
		github.com/fsouza/fake-gcs-server@$(FAKE_GCS_VERSION)
	@mkdir -p $(@D) && touch $@

# Airflow has an environment of its own: it needs other versions of many packages that tests need.
$(STAMPS)/airflow:
	@echo "Installing Airflow $(AIRFLOW_VERSION) into build/airflow"
	@rm -rf build/airflow && $(PYTHON) -m venv build/airflow
	@build/airflow/bin/python -m pip --disable-pip-version-check install --quiet \
		apache-airflow==$(AIRFLOW_VERSION)
	@mkdir -p $(@D) && touch $@

# These packages come before the installed ones on Python's path: the notebook also needs pyspark and rlm.
$(STAMPS)/jupyter: $(STAMPS)/dev
	@echo "Installing what runs notebooks into build/jupyter"
	@rm -rf build/jupyter
	@$(PIP) --target build/jupyter nbclient==$(NBCLIENT_VERSION) ipykernel==$(IPYKERNEL_VERSION)
	@mkdir -p $(@D) && touch $@

# A peer of the gateway: Kafka's own tiering with the store that Kafka's tests use.
$(STAMPS)/kafka-tiering: tests/services/pom.xml
	@command -v mvn >/dev/null || { echo "cannot fetch jars: mvn is not on the PATH. Install Maven." >&2; exit 1; }
	@echo "Fetching Kafka's LocalTieredStorage into $(KAFKA_TIERING)"
	@rm -rf $(KAFKA_TIERING)
	@$(MVN) dependency:copy -DoutputDirectory=$(CURDIR)/$(KAFKA_TIERING) \
		-Dartifact=org.apache.kafka:kafka-storage:$(KAFKA_VERSION):jar:test
	@mkdir -p $(@D) && touch $@
