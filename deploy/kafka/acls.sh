#!/bin/sh
# Prints the kafka-acls.sh commands that give a user of Kafka what one role of rlm needs, and no more:
#
#   deploy/kafka/acls.sh ROLE PRINCIPAL TOPIC … -- OPTION …
#   deploy/kafka/acls.sh host User:rlm orders payments -- --bootstrap-server broker1:9092 | sh
#
# The options go to each command. A topic is a name, or '*' for all. Roles:
#   host      rlm run next to a broker: the manager, and its gateway
#   gateway   rlm gateway that serves the whole cluster
#   operator  the commands that show or change tiered topics, rlm dlq and rlm read
#   jobs      Spark: the data source, rlm-export, rlm-audit, rlm-repair
#
# METADATA_TOPIC and DEAD_LETTER_TOPIC name the two topics of rlm if they are not the default ones.
set -eu
metadata=${METADATA_TOPIC:-__remote_log_segment_metadata}
dead_letters=${DEAD_LETTER_TOPIC:-__remote_segments_to_be_deleted}
# No process joins a group, but the Kafka client looks up the group that it is configured with.
reader=$metadata.reader

main() {
    [ $# -ge 3 ] || fail
    role=$1 principal=$2
    shift 2
    topics=
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        topics="$topics$(quoted --topic "$1")"
        shift
    done
    [ -n "$topics" ] || fail
    [ $# -eq 0 ] || shift
    options=$(quoted "$@")
    case $role in
        host)
            allow "$(quoted --cluster)" Describe DescribeConfigs
            allow "$topics" Describe DescribeConfigs AlterConfigs Delete
            # Share groups and their coordinators: unread records of share groups are not trimmed.
            allow "$(quoted --group '*' --topic __consumer_offsets)" Describe
            allow "$(quoted --topic "$metadata" --topic "$dead_letters")" \
                Create Describe DescribeConfigs Read Write
            ;;
        gateway)
            allow "$(quoted --cluster)" Describe
            allow "$topics$(quoted --group "$reader")" Describe
            allow "$(quoted --topic "$metadata")" Describe DescribeConfigs Read Write
            ;;
        operator)
            allow "$(quoted --cluster)" Describe DescribeConfigs
            allow "$topics" Describe DescribeConfigs AlterConfigs Read
            allow "$(quoted --group "$reader" --group rlm-read --group "$dead_letters.reader")" Describe
            allow "$(quoted --topic "$metadata")" Describe DescribeConfigs Read Write
            # `rlm dlq list` and `rlm dlq retry` read it.
            allow "$(quoted --topic "$dead_letters")" Describe DescribeConfigs Read
            ;;
        jobs)
            allow "$(quoted --cluster)" Describe
            allow "$topics" Describe Read
            allow "$(quoted --group "$reader" --group rlm-spark)" Describe
            allow "$(quoted --topic "$metadata")" Describe DescribeConfigs Read Write
            # rlm-repair parks dead letters that need a person.
            allow "$(quoted --topic "$dead_letters" --topic "$dead_letters.parked")" \
                Create Describe DescribeConfigs Read Write
            ;;
        *) fail ;;
    esac
}

# Prints one command that allows the operations $2, $3, … on the resources $1.
allow() {
    resources=$1
    shift
    operations=
    for each in "$@"; do operations="$operations --operation $each"; done
    printf '%s\n' "kafka-acls.sh$options --add --allow-principal$(quoted "$principal")$operations$resources"
}

# Prints each argument, quoted for the shell where needed, with a space in front.
quoted() {
    for each in "$@"; do
        case $each in
            *[!A-Za-z0-9_.:=/,-]*) printf " '%s'" "$(printf %s "$each" | sed "s/'/'\\\\''/g")" ;;
            *) printf ' %s' "$each" ;;
        esac
    done
}

fail() {
    echo "usage: $0 host|gateway|operator|jobs PRINCIPAL TOPIC … [-- OPTION …]" >&2
    exit 2
}

main "$@"
