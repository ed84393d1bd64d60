# The image of rlm with the clients of all stores, and the image of its Spark jobs (target `spark`):
# `make images` builds them and prints their layers. What is downloaded depends on the lock files and
# the connector's POM alone, so a change of the code downloads nothing.
ARG PYTHON_IMAGE=docker.io/library/python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS dependencies
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
RUN python3 -m venv /opt/builder && python3 -m venv --without-pip /opt/rlm
COPY requirements.txt requirements-image.txt ./
# requirements.txt also has the packages that build rlm itself. botocore describes all AWS services, in
# 25 MB. Only those that a client of S3 and its credentials use stay in the image.
RUN /opt/builder/bin/pip install --quiet --only-binary=:all: --require-hashes -r requirements.txt \
    && /opt/builder/bin/pip --python /opt/rlm/bin/python install --quiet --only-binary=:all: \
        --require-hashes -r requirements-image.txt \
    && find /opt/rlm/lib/python3*/site-packages/botocore/data -mindepth 1 -maxdepth 1 -type d \
        ! -name s3 ! -name sts ! -name 'sso*' ! -name signin -exec rm -r {} +

# /installed has the files that rlm adds to its dependencies.
FROM dependencies AS build
COPY pyproject.toml README.md LICENSE ./
COPY rlm rlm/
COPY rsm rsm/
COPY rlmm rlmm/
COPY spark_tools spark_tools/
RUN /opt/builder/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/builder/bin/pip --python /opt/rlm/bin/python install --quiet --no-deps \
        --prefix /installed /wheels/*.whl

FROM ${PYTHON_IMAGE} AS runtime
LABEL org.opencontainers.image.licenses="Apache-2.0"
# Named volumes take their owner from these directories. The root file system may be read-only.
RUN groupadd --gid 10001 rlm \
    && useradd --uid 10001 --gid rlm --home-dir /var/lib/rlm --no-create-home --shell /usr/sbin/nologin rlm \
    && install --directory --owner=rlm --group=rlm /var/lib/rlm /var/cache/rlm /srv/archive
COPY --from=dependencies /opt/rlm /opt/rlm
ENV PATH=/opt/rlm/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

FROM runtime AS rlm
LABEL org.opencontainers.image.title="kafka-rlm" \
    org.opencontainers.image.description="Tiered storage for any Apache Kafka cluster, from outside the broker"
COPY --from=build /installed /opt/rlm
USER 10001:10001
WORKDIR /var/lib/rlm
VOLUME ["/var/lib/rlm", "/var/cache/rlm"]
EXPOSE 9464 19092
# Port 9464 of metrics.listener, or of rest.listener for `rlm gateway`. Neither has a default: while
# nothing listens there, a running container counts as healthy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD python3 -c "import socket, urllib.request as r; socket.socket().connect_ex(('127.0.0.1', 9464)) or r.urlopen('http://127.0.0.1:9464/healthz', timeout=4)"
ENTRYPOINT ["rlm"]
CMD ["run"]
# Last, because the revision changes with every commit: the layers above stay cached.
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.version="${VERSION}" org.opencontainers.image.revision="${REVISION}"

FROM ${PYTHON_IMAGE} AS connector
# A slim Debian lacks a directory that Java's package writes to.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes -qq --no-install-recommends maven \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY spark_tools/connector.xml ./
RUN mvn --quiet --batch-mode --file connector.xml dependency:copy-dependencies -DoutputDirectory=/jars

# /spark has the packages that Spark jobs add to the dependencies of rlm. Spark itself has no wheel.
FROM dependencies AS spark-dependencies
COPY requirements-spark.txt requirements-pyspark.txt ./
RUN /opt/builder/bin/pip wheel --quiet --no-deps --no-build-isolation --require-hashes \
        --wheel-dir /wheels -r requirements-pyspark.txt \
    && /opt/builder/bin/pip --python /opt/rlm/bin/python install --quiet --no-deps \
        --only-binary=:all: --require-hashes --prefix /spark -r requirements-spark.txt \
    && /opt/builder/bin/pip --python /opt/rlm/bin/python install --quiet --no-deps \
        --prefix /spark /wheels/*.whl
COPY --from=connector /jars /jars
RUN cp /jars/*.jar /spark/lib/python3*/site-packages/pyspark/jars/

# The image of Spark's master and workers, and of the jobs. It has no entry point: the command of a
# container names the program.
FROM runtime AS spark
LABEL org.opencontainers.image.title="kafka-rlm-spark" \
    org.opencontainers.image.description="Audit, repair and export of tiered storage for Apache Kafka, with Apache Spark"
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes -qq --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner=rlm --group=rlm /var/lib/spark /srv/spark
COPY --from=spark-dependencies /spark /opt/rlm
COPY --from=build /installed /opt/rlm
ENV PYSPARK_PYTHON=/opt/rlm/bin/python3 SPARK_CONF_DIR=/etc/spark \
    SPARK_WORKER_DIR=/var/lib/spark/work SPARK_LOCAL_DIRS=/var/lib/spark/local \
    NUMBA_CACHE_DIR=/var/lib/spark/numba
USER 10001:10001
WORKDIR /var/lib/spark
VOLUME ["/var/lib/spark"]
CMD ["rlm-audit", "--help"]
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.version="${VERSION}" org.opencontainers.image.revision="${REVISION}"

# Without a target, the image of rlm is built.
FROM rlm
