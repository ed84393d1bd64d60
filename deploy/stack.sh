#!/bin/sh
# Builds the images and starts the compose stack, by Docker or by Podman: `make images`, `make up`,
# `make down`. It finds the engine and its compose, and says what to do where one is missing.
set -eu
cd "$(dirname "$0")/.."
tag=${RLM_TAG:-latest}
targets="rlm${SPARK:+ spark}"
profiles="--profile client --profile quickstart --profile monitoring --profile spark --profile spark-job"

main() {
    command=${1:-}
    [ $# -eq 0 ] || shift
    case $command in
        images) find_engine && build_images "$@" ;;
        up) find_engine && find_compose && start "$@" ;;
        down) find_engine && find_compose && compose $profiles down "$@" ;;
        compose) find_engine && find_compose && compose "$@" ;;
        engine) find_engine && echo "$engine" ;;
        *) fail "usage: $0 images|up|down|compose|engine [ARGUMENT …]" ;;
    esac
}

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

# Sets $engine. An engine that `make containers-here` started is taken first.
find_engine() {
    socket=$PWD/build/containers/podman.sock
    if [ -z "${DOCKER_HOST:-}${CONTAINER_HOST:-}" ] && [ -S "$socket" ]; then
        export DOCKER_HOST="unix://$socket" CONTAINER_HOST="unix://$socket"
    fi
    reason=
    for engine in ${ENGINE:-docker podman}; do
        command -v "$engine" >/dev/null 2>&1 || continue
        if answer=$("$engine" version --format '{{.Server.Version}}' 2>&1) && [ -n "$answer" ] \
            || { [ "$engine" = podman ] && answer=$(podman info 2>&1); }; then
            return 0
        fi
        reason="$reason
  $engine: $(printf '%s' "$answer" | tail -n 1)"
    done
    [ -n "$reason" ] || fail "cannot run containers: neither docker nor podman is on the PATH." \
        "Install one of them: Docker with its compose plugin, or podman and docker-compose" \
        "(Debian: apt-get install podman docker-compose)."
    case $reason in
        *ermission\ denied*) fail "cannot run containers: this user ($(id -un)) may not use the engine:$reason" \
            "Add the user to the group of the engine's socket (usermod -aG docker $(id -un), then log in" \
            "again), or use podman, which needs no rights of root." ;;
        *) [ "${DOCKER_HOST:-}" != "unix://$socket" ] \
                || fail "cannot run containers: no engine answers:$reason" \
                    "Start the engine of this checkout again: make containers-here."
            fail "cannot run containers: no engine answers:$reason" \
            "Start it: systemctl start docker; or for podman: systemctl --user start podman.socket." ;;
    esac
}

# Sets $compose, a command with its first arguments.
find_compose() {
    if "$engine" compose version >/dev/null 2>&1; then
        compose="$engine compose"
    elif command -v docker-compose >/dev/null 2>&1; then
        compose=docker-compose
        [ "$engine" = docker ] || use_podman_socket
    elif [ "$engine" = podman ] && command -v podman-compose >/dev/null 2>&1; then
        compose=podman-compose
    else
        fail "cannot start the stack: $engine is here, but no compose." \
            "Install Docker's compose plugin (docker-compose-plugin) or docker-compose."
    fi
}

# docker-compose speaks to a socket, not to a program.
use_podman_socket() {
    [ -z "${DOCKER_HOST:-}" ] || return 0
    socket=$(podman info --format '{{.Host.RemoteSocket.Path}}')
    [ -S "${socket#unix://}" ] || fail "cannot start the stack: podman has no socket at $socket." \
        "Start it: systemctl --user start podman.socket (as root: systemctl start podman.socket)."
    export DOCKER_HOST="unix://${socket#unix://}"
}

# The project's name does not depend on the name of the checkout's directory.
compose() {
    COMPOSE_PROJECT_NAME=${COMPOSE_PROJECT_NAME:-kafka-rlm} $compose "$@"
}

# The name of the image of a target of the Dockerfile.
image_of() {
    case $1 in
        rlm) echo "localhost/kafka-rlm:$tag" ;;
        *) echo "localhost/kafka-rlm-$1:$tag" ;;
    esac
}

build_images() {
    for target in $targets; do build_image "$target"; done
}

build_image() {
    image=$(image_of "$1")
    revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
    echo "Building $image"
    # Podman's own format has no health check.
    format=; [ "$engine" != podman ] || format="--format docker"
    # shellcheck disable=SC2086 # none or two arguments
    DOCKER_BUILDKIT=${DOCKER_BUILDKIT-$(buildkit)} "$engine" build $format --target "$1" --tag "$image" \
        --build-arg VERSION="$version" --build-arg REVISION="$revision" . \
        || fail "cannot build $image: the output above has the reason." \
            "Without a registry that has the base image: make containers-here"
    print_layers "$image"
}

# A docker without its buildx plugin only has the older builder.
buildkit() {
    if [ "$engine" = docker ] && docker buildx version >/dev/null 2>&1; then echo 1; else echo 0; fi
}

# The layers on top of the base image: those since the label that the Dockerfile writes first.
print_layers() {
    echo "Layers of $1 on top of its base:"
    # Docker prints bytes, Podman a number and its unit.
    "$engine" history --no-trunc --human=false --format '{{.Size}}\t{{.CreatedBy}}' "$1" | awk -F '\t' '
        BEGIN { scale["kB"] = 1e3; scale["MB"] = 1e6; scale["GB"] = 1e9 }
        { split($1, size, " "); bytes = size[1] * (size[2] in scale ? scale[size[2]] : 1)
          total += bytes
          if (bytes >= 5e4) printf "  %8.1f MB  %s\n", bytes / 1e6, substr($2, 1, 90) }
        $2 ~ /LABEL.*opencontainers.image.licenses/ { exit }
        END { printf "  %8.1f MB  in all\n", total / 1e6 }'
}

# `up` with the services to start; without any, the stack of three brokers.
start() {
    for target in $targets; do
        image=$(image_of "$target")
        "$engine" image inspect "$image" >/dev/null 2>&1 \
            || fail "cannot start the stack: the image $image is missing. Build it:" \
                "make images${SPARK:+ SPARK=1}"
    done
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    echo "Starting containers; this takes a minute or two"
    if ! compose ${MONITORING:+--profile monitoring} ${SPARK:+--profile spark} up -d "$@" >"$log" 2>&1; then
        explain "cannot start the stack:" "$(tail -n 15 "$log")"
    fi
    case ${1:-} in
        quickstart) wait_until_ready quickstart ;;
        *) wait_until_ready rlm-1 rlm-2 rlm-3 ${SPARK:+spark-worker} ;;
    esac
    [ -z "${MONITORING:-}" ] || echo "Boards: http://127.0.0.1:3000, user admin, password in" \
        "${GRAFANA_PASSWORD:-deploy/compose/grafana-password}. Alerts: http://127.0.0.1:9090/alerts"
}

# Ends with the engine's message $2, and with what to do about it.
explain() {
    case $2 in
        *address\ already\ in\ use* | *port\ is\ already\ allocated*)
            advice="A port is occupied. Find its user: ss -ltnp | grep -E ':(1909|3000|9090)'. Stop it, or publish the
gateways at another address of this machine: BIND_ADDRESS=127.0.0.2 make up" ;;
        *o\ such\ image* | *manifest\ unknown* | *pull\ access\ denied* | *initializing\ source* | *nable\ to\ find\ image*)
            advice="An image is missing and cannot be pulled. Give the engine access to the registry, or name
another image: KAFKA_IMAGE=… STORE_IMAGE=… make up. Without any registry: make containers-here" ;;
        *nhealthy*)
            advice="A container is not healthy. Its log: deploy/stack.sh compose logs SERVICE" ;;
        *) advice= ;;
    esac
    fail "$1" "$2" ${advice:+"$advice"}
}

wait_until_ready() {
    for service in "$@"; do
        case $service in
            spark-worker) page=:8081/ advice="Its log: deploy/stack.sh compose logs $service" ;;
            *) page=:9464/readyz advice="Its state: deploy/stack.sh compose exec $service rlm processes" ;;
        esac
        ready="import urllib.request as r; r.urlopen('http://127.0.0.1$page', timeout=4)"
        tries=60
        until compose exec -T "$service" python3 -c "$ready" >/dev/null 2>&1; do
            tries=$((tries - 1))
            [ $tries -gt 0 ] || fail "cannot start the stack: $service is not ready after 2 minutes:" \
                "$(compose logs --tail 5 "$service" 2>&1)" \
                "$advice"
            sleep 2
        done
        echo "$service is ready"
    done
}

main "$@"
