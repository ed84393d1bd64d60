# The checkout with all that `make services` needs and makes; docker-compose.yml runs make in it.
FROM golang:1.26-bookworm AS go

FROM debian:bookworm-slim
COPY --from=go /usr/local/go /usr/local/go
ENV PATH=/usr/local/go/bin:$PATH

# Java's package links its manual into a directory that a slim image may lack.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends \
        ca-certificates iproute2 make maven nodejs npm openjdk-17-jdk-headless openssl python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --home-dir /var/lib/rlm rlm \
    && install --directory --owner=rlm --group=rlm /checkout

USER rlm
WORKDIR /checkout
ENV PIP_NO_CACHE_DIR=1

# What is downloaded depends on these files alone, so a change of the code downloads nothing.
COPY --chown=rlm:rlm Makefile requirements-dev.txt ./
COPY --chown=rlm:rlm tests/services/pom.xml tests/services/
COPY --chown=rlm:rlm tests/services/hadoop tests/services/hadoop/
RUN make build/stamps/jars build/stamps/hadoop build/stamps/schema-registry && rm -rf ~/.m2
RUN python3 -m venv .venv && .venv/bin/pip install --quiet --require-hashes -r requirements-dev.txt

COPY --chown=rlm:rlm tests/clients/go tests/clients/go/
RUN make build/stamps/reader-go build/stamps/versitygw build/stamps/azurite \
        build/stamps/fake-gcs && go clean -cache -modcache

COPY --chown=rlm:rlm . .
RUN make services
