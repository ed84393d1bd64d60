# Everything that is installed or built stays below .venv/ and build/.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup check test test-long test-spark-oldest fuzz sim chaos demo bench bench-gateway bench-metadata bench-spark bench-storage \
	proto docs lock clean static downloads s3-server-if-possible azurite-if-possible \
	gcs-server-if-possible reader-if-possible

PYTHON ?= python3
BIN := .venv/bin
STAMPS := build/stamps
KAFKA := build/kafka
HADOOP := build/hadoop
KAFKA_TIERING := build/kafka-tiering
KAFKA_VERSION = $(shell sed -n 's|.*<kafka.version>\(.*\)</.*|\1|p' tests/services/pom.xml)
CLIENTS := build/clients
SPARK_OLDEST := build/spark-oldest
SPARK_OLDEST_VERSION = 4.0.0
AZURITE_VERSION = 3.35.0
FAKE_GCS_VERSION = v1.56.1
VERSITYGW_VERSION = v1.8.0
GO_READER := $(wildcard tests/clients/go/*)
OURS := $(wildcard rlm rsm rlmm spark_tools tests demo bench)
PROTOS := $(shell find rlm rsm rlmm -name '*.proto' | sort)
# Setuptools warns at length that an editable installation is one.
PIP := PYTHONWARNINGS=ignore $(BIN)/python -m pip --disable-pip-version-check install --quiet
PYTEST := $(BIN)/python -m pytest
PIP_COMPILE := CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --generate-hashes \
	--strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --no-emit-options $(if $(UPGRADE),--upgrade)

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMPS)/kafka ## Install Python packages, Kafka's jars and test clients below the checkout

check: setup static ## Format, lint, types, layers, and the tests without services
	$(PYTEST) -q $(wildcard tests/architecture tests/unit tests/contract)

test: setup $(addprefix $(STAMPS)/,reader-go reader-java kafka-tiering versitygw hadoop azurite fake-gcs) static ## The static checks and every test
	$(PYTEST) -q tests

test-long: setup ## The tests with random data, with 50 times as much of it (an hour or so)
	$(PYTEST) -q --hypothesis-profile=long --timeout=0 tests/unit tests/integration/rlm/wire

# That Spark has no filters to push down, and leaves sockets open.
test-spark-oldest: setup $(STAMPS)/versitygw $(STAMPS)/spark-oldest ## The Spark jobs' tests on the oldest Spark that they support
	PYTHONPATH=$(CURDIR)/$(SPARK_OLDEST)/packages SPARK_CONNECTOR=$(CURDIR)/$(SPARK_OLDEST)/jars \
		$(PYTEST) -q tests/integration/spark_tools -k "not pushed_down" \
		-W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning

fuzz: setup ## The gateway's session between random clients and brokers, for some minutes
	$(PYTEST) -q --hypothesis-profile=long --timeout=0 tests/unit/rlm/gateway/test_session_fuzz.py

sim: setup ## Random stories of crashes and elections in memory (SEEDS=100000, or SEED=7 STEPS=60)
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(STEPS),--steps $(STEPS))

chaos: setup ## Kill and freeze real brokers and hosts while producers write (MINUTES=10 SEED=1)
	@$(BIN)/python -m tests.chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

demo: setup ## Tier, trim and read back a topic of a real broker (KEEP=1: leave all running)
	@$(BIN)/python -m demo $(if $(KEEP),--keep)

bench: setup ## Measure against peers in the same run (OUT=FILE: write JSON too)
	@$(BIN)/python -m bench $(if $(OUT),--out $(OUT))

bench-gateway: setup $(STAMPS)/kafka-tiering ## Measure the gateway (OUT=FILE, ONLY="NAME …", SHORT=1)
	@$(BIN)/python -m bench.gateway $(if $(OUT),--out $(OUT)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(SHORT),--short)

bench-metadata: setup ## Measure the metadata side (SEGMENTS="10000 …" OUT=FILE)
	@$(BIN)/python -m bench.metadata $(if $(OUT),--out $(OUT)) \
		$(if $(SEGMENTS),--segments $(SEGMENTS))

bench-storage: setup $(STAMPS)/versitygw ## Measure the S3 store beside plain clients (OUT=FILE, SHORT=1)
	@$(BIN)/python -m bench.storage $(if $(OUT),--out $(OUT)) $(if $(SHORT),--short)

bench-spark: setup $(STAMPS)/versitygw ## Measure the Spark jobs (OUT=FILE, ONLY="NAME …", SHORT=1)
	@$(BIN)/python -m bench.spark $(if $(OUT),--out $(OUT)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(SHORT),--short)

proto: setup ## Generate the protobuf modules beside their .proto files
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. $(PROTOS)

docs: setup ## Generate docs/config.md and docs/metrics.md from the code
	$(BIN)/python -m rlm.config.reference > docs/config.md
	$(BIN)/python -m rlm.metrics_reference > docs/metrics.md

lock: setup ## Pin the dependencies in requirements*.txt again (UPGRADE=1: to the newest)
	$(PIP_COMPILE) -o requirements.txt pyproject.toml
	$(PIP_COMPILE) --extra dev --extra spark -c requirements.txt -o requirements-dev.txt pyproject.toml

clean: ## Remove what was installed and built
	rm -rf .venv build dist *.egg-info

static:
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy --no-error-summary $(OURS)
	$(BIN)/lint-imports --cache-dir build/import-linter

$(STAMPS)/venv: requirements-dev.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not on the PATH" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$$($(PYTHON) --version) is too old: Python 3.11 or newer is needed;" \
			"name one with make PYTHON=python3.11" >&2; exit 1; }
	@echo "Installing Python packages into .venv"
	@$(PYTHON) -m venv .venv
	@$(PIP) --require-hashes -r requirements-dev.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@mkdir -p $(@D) && touch $@

$(STAMPS)/jars: tests/services/pom.xml
	@command -v java >/dev/null || { echo "Java 17 or newer is needed: no java" >&2; exit 1; }
	@command -v mvn >/dev/null || { echo "Maven is needed: no mvn on the PATH" >&2; exit 1; }
	@echo "Fetching Kafka's jars into $(KAFKA)"
	@rm -rf $(KAFKA)
	@mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory=$(CURDIR)/$(KAFKA)/jars
	@mkdir -p $(@D) && touch $@

# What `rlm-repair --jars build/spark-jars` wants.
$(STAMPS)/spark-jars: spark_tools/connector.xml
	@command -v mvn >/dev/null || { echo "Maven is needed: no mvn on the PATH" >&2; exit 1; }
	@echo "Fetching Spark's Kafka connector into build/spark-jars"
	@rm -rf build/spark-jars
	@mvn -q -B -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/build/spark-jars
	@mkdir -p $(@D) && touch $@

# In front of the installed one on Python's path.
$(STAMPS)/spark-oldest: spark_tools/connector.xml
	@echo "Fetching Spark $(SPARK_OLDEST_VERSION) and its Kafka connector into $(SPARK_OLDEST)"
	@rm -rf $(SPARK_OLDEST)
	@$(PIP) --target $(SPARK_OLDEST)/packages --no-deps pyspark==$(SPARK_OLDEST_VERSION) \
		$$(sed -n 's/^\(py4j==[0-9.]*\).*/\1/p' requirements-dev.txt)
	@mvn -q -B -f $< -Dspark.version=$(SPARK_OLDEST_VERSION) dependency:copy-dependencies \
		-DoutputDirectory=$(CURDIR)/$(SPARK_OLDEST)/jars
	@mkdir -p $(@D) && touch $@

# Behind the other jars: two Mavens at once may spoil each other's downloads.
$(STAMPS)/hadoop: tests/services/hadoop/pom.xml | $(STAMPS)/jars
	@command -v mvn >/dev/null || { echo "Maven is needed: no mvn on the PATH" >&2; exit 1; }
	@echo "Fetching the jars of Hadoop's mini cluster into $(HADOOP)"
	@rm -rf $(HADOOP)
	@mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory=$(CURDIR)/$(HADOOP)/jars
	@mkdir -p $(@D) && touch $@

# The readers are programs of the tests that run real clients; all else does without Go and javac.
$(STAMPS)/reader-go: $(GO_READER)
	@command -v go >/dev/null || { echo "Go 1.26 or newer is needed for all tests: no go" >&2; exit 1; }
	@echo "Building the reader over franz-go"
	@go -C tests/clients/go build -o $(CURDIR)/$(CLIENTS)/reader-go .
	@mkdir -p $(@D) && touch $@

$(STAMPS)/reader-java: tests/clients/java/Reader.java $(STAMPS)/jars
	@command -v javac >/dev/null || { echo "A JDK is needed for all tests: no javac" >&2; exit 1; }
	@javac -d $(CLIENTS)/java -cp '$(KAFKA)/jars/*' --release 17 -Xlint:all -Werror $<
	@mkdir -p $(@D) && touch $@

# An S3 server, for the tests of that store and its benchmark.
$(STAMPS)/versitygw:
	@command -v go >/dev/null || { echo "Go 1.26 or newer is needed for all tests: no go" >&2; exit 1; }
	@echo "Building versitygw, an S3 server"
	@GOBIN=$(CURDIR)/build/versitygw go install \
		github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION)
	@mkdir -p $(@D) && touch $@

# Azure's own emulation of its Blob Storage, for the tests of that store.
$(STAMPS)/azurite:
	@command -v npm >/dev/null || { echo "Node is needed for all tests: no npm" >&2; exit 1; }
	@echo "Fetching Azurite, an Azure Blob Storage server"
	@npm install --silent --no-audit --no-fund --prefix build/azurite azurite@$(AZURITE_VERSION)
	@mkdir -p $(@D) && touch $@

# A stand-in for Google Cloud Storage, for the tests of that store.
$(STAMPS)/fake-gcs:
	@command -v go >/dev/null || { echo "Go 1.26 or newer is needed for all tests: no go" >&2; exit 1; }
	@echo "Building fake-gcs-server, a stand-in for Google Cloud Storage"
	@GOBIN=$(CURDIR)/build/fake-gcs go install \
		github.com/fsouza/fake-gcs-server@$(FAKE_GCS_VERSION)
	@mkdir -p $(@D) && touch $@

# A peer of the gateway: Kafka's own tiering with the store that Kafka's tests use.
$(STAMPS)/kafka-tiering: tests/services/pom.xml
	@command -v mvn >/dev/null || { echo "Maven is needed: no mvn on the PATH" >&2; exit 1; }
	@echo "Fetching Kafka's LocalTieredStorage into $(KAFKA_TIERING)"
	@rm -rf $(KAFKA_TIERING)
	@mvn -q -B dependency:copy -DoutputDirectory=$(CURDIR)/$(KAFKA_TIERING) \
		-Dartifact=org.apache.kafka:kafka-storage:$(KAFKA_VERSION):jar:test
	@mkdir -p $(@D) && touch $@

# Downloads from several registries: side by side they take as long as the slowest one.
downloads:
	@$(MAKE) --no-print-directory -j7 $(STAMPS)/venv $(STAMPS)/jars $(STAMPS)/spark-jars \
		$(STAMPS)/hadoop reader-if-possible s3-server-if-possible azurite-if-possible \
		gcs-server-if-possible

reader-if-possible:
	@$(MAKE) --no-print-directory $(STAMPS)/reader-go || echo "Only the full test run needs that."

azurite-if-possible:
	@$(MAKE) --no-print-directory $(STAMPS)/azurite || echo "Only the full test run needs that."

gcs-server-if-possible:
	@$(MAKE) --no-print-directory $(STAMPS)/fake-gcs || echo "Only the full test run needs that."

s3-server-if-possible:
	@$(MAKE) --no-print-directory $(STAMPS)/versitygw || echo "Only the full test run needs that."

$(STAMPS)/kafka: tests/services/pom.xml spark_tools/connector.xml requirements-dev.txt pyproject.toml
	@$(MAKE) --no-print-directory downloads
	@$(BIN)/python -m tests.services.kafka_setup
	@touch $@
