# The image of rlm, with the clients of all stores: `make images` builds it and prints its layers.
# What is downloaded depends on the lock files alone, so a change of the code downloads nothing.
ARG PYTHON_IMAGE=docker.io/library/python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS dependencies
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
RUN python3 -m venv /opt/builder && python3 -m venv --without-pip /opt/rlm
COPY requirements.txt requirements-image.txt ./
# requirements.txt also has the packages that build rlm itself.
RUN /opt/builder/bin/pip install --quiet --only-binary=:all: --require-hashes -r requirements.txt \
    && /opt/builder/bin/pip --python /opt/rlm/bin/python install --quiet --only-binary=:all: \
        --require-hashes -r requirements-image.txt

# Below /installed is what rlm adds to its dependencies.
FROM dependencies AS build
COPY pyproject.toml README.md LICENSE ./
COPY rlm rlm/
COPY rsm rsm/
COPY rlmm rlmm/
COPY spark_tools spark_tools/
RUN /opt/builder/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/builder/bin/pip --python /opt/rlm/bin/python install --quiet --no-deps \
        --prefix /installed /wheels/*.whl

FROM ${PYTHON_IMAGE} AS rlm
LABEL org.opencontainers.image.title="kafka-rlm" \
    org.opencontainers.image.description="Tiered storage for any Apache Kafka cluster, from outside the broker" \
    org.opencontainers.image.licenses="Apache-2.0"
# Named volumes take their owner from these directories. The root file system may be read-only.
RUN groupadd --gid 10001 rlm \
    && useradd --uid 10001 --gid rlm --home-dir /var/lib/rlm --no-create-home --shell /usr/sbin/nologin rlm \
    && install --directory --owner=rlm --group=rlm /var/lib/rlm /var/cache/rlm /srv/archive
COPY --from=dependencies /opt/rlm /opt/rlm
COPY --from=build /installed /opt/rlm
ENV PATH=/opt/rlm/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /var/lib/rlm
VOLUME ["/var/lib/rlm", "/var/cache/rlm"]
EXPOSE 9464 19092
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD python3 -c "import urllib.request as r; r.urlopen('http://127.0.0.1:9464/healthz', timeout=4)"
ENTRYPOINT ["rlm"]
CMD ["run"]
# Last, because they change with every commit: the layers above stay cached.
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.version="${VERSION}" org.opencontainers.image.revision="${REVISION}"
