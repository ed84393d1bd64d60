#!/bin/sh
# Runs the tool by whose name it is called.
case $(basename "$0") in
    kafka-topics.sh) class=org.apache.kafka.tools.TopicCommand ;;
    kafka-configs.sh) class=kafka.admin.ConfigCommand ;;
    kafka-get-offsets.sh) class=org.apache.kafka.tools.GetOffsetShell ;;
    kafka-console-consumer.sh) class=org.apache.kafka.tools.consumer.ConsoleConsumer ;;
    kafka-console-producer.sh) class=org.apache.kafka.tools.ConsoleProducer ;;
    kafka-producer-perf-test.sh) class=org.apache.kafka.tools.ProducerPerformance ;;
    kafka-leader-election.sh) class=org.apache.kafka.tools.LeaderElectionCommand ;;
    kafka-broker-api-versions.sh) class=org.apache.kafka.tools.BrokerApiVersionsCommand ;;
    *) echo "no such tool: $0" >&2; exit 1 ;;
esac
# shellcheck disable=SC2086 # options
exec java ${KAFKA_HEAP_OPTS:--Xmx256m} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*' \
    -Dlog4j2.configurationFile=/etc/kafka/docker/tools-log4j2.yaml "$class" "$@"
