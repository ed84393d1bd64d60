# Like apache/kafka: its own wrapper makes the same files of the same variables. The layer with Java is
# also that of hadoop.Dockerfile.
FROM localhost/rlm-stand-in-debian
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes -qq --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 1000 --create-home --home-dir /var/lib/appuser appuser \
    && mkdir -p /etc/kafka/secrets /mnt/shared/config /var/lib/kafka/data /opt/kafka/config /opt/kafka/logs
COPY jars /opt/kafka/libs/
COPY bin /opt/kafka/bin/
COPY docker /etc/kafka/docker/
# A checkout need not keep symbolic links.
RUN for tool in broker-api-versions configs console-consumer console-producer get-offsets \
        leader-election producer-perf-test topics; do ln -s kafka-tool.sh /opt/kafka/bin/kafka-$tool.sh; done
RUN chown -R appuser:appuser /opt/kafka/config /opt/kafka/logs /mnt/shared/config \
    && chown -R appuser:root /var/lib/kafka /etc/kafka && chmod -R ug+w /var/lib/kafka /etc/kafka
USER appuser
EXPOSE 9092
VOLUME ["/etc/kafka/secrets", "/var/lib/kafka/data", "/mnt/shared/config"]
CMD ["/etc/kafka/docker/run"]
