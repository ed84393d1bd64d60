# Like apache/hadoop: the two daemons of HDFS, from the jars of Hadoop's mini cluster.
FROM localhost/rlm-stand-in-debian
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes -qq --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
COPY jars /opt/hadoop/share/hadoop/
COPY bin /opt/hadoop/bin/
ENV PATH=$PATH:/opt/hadoop/bin
