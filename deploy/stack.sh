#!/bin/sh
# Builds the images and starts the compose stack, by Docker or by Podman: `make images`, `make up`,
# `make down`. It finds the engine and its compose, and says what to do where one is missing.
set -eu
cd "$(dirname "$0")/.."
tag=${RLM_TAG:-latest}
targets="rlm${SPARK:+ spark}"
# All profiles, because `down` ends only the services of the profiles that it gets.
profiles="--profile cluster --profile client --profile quickstart --profile streaming --profile monitoring --profile spark --profile spark-job"

main() {
    command=${1:-}
    [ $# -eq 0 ] || shift
    case $command in
        images) find_engine && build_images "$@" ;;
        packages) find_engine && print_packages "${1:-rlm}" ;;
        up) find_engine && find_compose && start "$@" ;;
        down) find_engine && find_compose && compose $profiles down "$@" ;;
        compose) find_engine && find_compose && compose "$@" ;;
        engine) find_engine && echo "$engine" ;;
        *) fail "usage: $0 images|packages|up|down|compose|engine [ARGUMENT …]" ;;
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
    reasons='' advice=''
    for engine in ${ENGINE:-docker podman}; do
        command -v "$engine" >/dev/null 2>&1 || continue
        if answer=$("$engine" version --format '{{.Server.Version}}' 2>&1) && [ -n "$answer" ] \
            || { [ "$engine" = podman ] && answer=$(podman info 2>&1); }; then
            return 0
        fi
        reasons="$reasons
  $engine: $(printf '%s' "$answer" | tail -n 1)"
        advice="$advice
$(engine_advice "$answer")"
    done
    [ -n "$reasons" ] || fail "cannot run containers: neither docker nor podman is on the PATH." \
        "Install one of them: Docker with its compose plugin, or podman and docker-compose" \
        "(Debian: apt-get install podman docker-compose)."
    fail "cannot run containers: no engine answers:$reasons$advice"
}

# Prints what to do about an engine that answers with $1.
engine_advice() {
    user=$(id -un)
    case $engine:$1 in
        podman:*peration\ not\ permitted* | podman:*newuidmap* | podman:*/etc/subuid* | podman:*user\ namespace*)
            echo "podman may not start containers as the user $user, who needs user ids for them:"
            echo "apt-get install uidmap; usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $user;"
            echo "podman system migrate. Where the kernel or an outer container forbids user namespaces,"
            echo "run make as root instead." ;;
        podman:*ermission\ denied*)
            echo "podman: this user ($user) may not use the engine's socket. Unset DOCKER_HOST and CONTAINER_HOST," \
                "or name a socket of this user." ;;
        *ermission\ denied*)
            echo "$engine: this user ($user) may not use the engine. Add the user to the group of the engine's"
            echo "socket (usermod -aG docker $user, then log in again), or use podman, which needs no rights of root." ;;
        *)
            if [ "${DOCKER_HOST:-}" = "unix://$socket" ]; then
                echo "Start the engine of this checkout again: make containers-here."
            elif [ "$engine" = podman ]; then
                echo "Start podman: systemctl --user start podman.socket (as root: systemctl start podman.socket)."
            else
                echo "Start docker: systemctl start docker."
            fi ;;
    esac
}

# Sets $compose, a command with its first arguments.
find_compose() {
    # `podman compose` otherwise warns that it runs another program.
    export PODMAN_COMPOSE_WARNING_LOGS=false
    if has_compose; then
        compose="$engine compose"
    elif command -v docker-compose >/dev/null 2>&1; then
        compose=docker-compose
    else
        # Not podman-compose: it treats profiles and health checks in another way.
        fail "cannot start the stack: $engine has no compose." \
            "Install Docker's compose plugin (docker-compose-plugin) or docker-compose. podman-compose does not suffice."
    fi
    [ "$engine" = docker ] || use_podman_socket
}

has_compose() {
    printed=$("$engine" compose version 2>&1) || return 1
    case $printed in *podman-compose\ version*) return 1 ;; esac
}

# Compose speaks to a socket, not to a program.
use_podman_socket() {
    [ -z "${DOCKER_HOST:-}" ] || return 0
    # A podman machine has its socket in another system, and forwards it.
    [ "$(podman info --format '{{.Host.ServiceIsRemote}}' 2>/dev/null)" != true ] || return 0
    socket=$(podman info --format '{{.Host.RemoteSocket.Path}}')
    [ -S "${socket#unix://}" ] || fail "cannot start the stack: podman has no socket at $socket." \
        "Start it: systemctl --user start podman.socket (as root: systemctl start podman.socket)."
    export DOCKER_HOST="unix://${socket#unix://}"
}

# The project's name does not depend on the name of the checkout's directory.
compose() {
    COMPOSE_PROJECT_NAME=${COMPOSE_PROJECT_NAME:-kafka-rlm} $compose "$@"
}

# Prints the name of the image of a target of the Dockerfile.
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
    [ -z "${PYTHON_IMAGE:-}" ] || format="$format --build-arg PYTHON_IMAGE=$PYTHON_IMAGE"
    # shellcheck disable=SC2086 # options without spaces
    DOCKER_BUILDKIT=${DOCKER_BUILDKIT-$(buildkit)} "$engine" build $format --target "$1" --tag "$image" \
        --build-arg VERSION="$version" --build-arg REVISION="$revision" . \
        || fail "cannot build $image: the output above has the reason." \
            "Without a registry that has the base image: make containers-here"
    print_layers "$image"
}

# Prints 1 if docker has BuildKit: without its buildx plugin, it has only the older builder.
buildkit() {
    if [ "$engine" = docker ] && docker buildx version >/dev/null 2>&1; then echo 1; else echo 0; fi
}

# Prints the Debian packages of a target's image, as dpkg's status file lists them.
print_packages() {
    image=$(image_of "$1")
    "$engine" image inspect "$image" >/dev/null 2>&1 \
        || fail "cannot list the packages of $image: there is no such image. Build it: make images."
    "$engine" run --rm --network none --entrypoint cat "$image" /var/lib/dpkg/status
}

# Prints the layers on top of the base image: those since the label that the Dockerfile writes first.
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

# Starts the named services; without names, the stack of three brokers.
start() {
    case ${MONITORING:-}${SPARK:-}:${1:-} in
        :* | *: | *:-*) ;;
        *) fail "cannot start the stack: MONITORING=1 and SPARK=1 are for the stack of three brokers, and" \
            "SERVICES=$* names other services. Leave out SERVICES, or MONITORING and SPARK." ;;
    esac
    for target in $targets; do
        image=$(image_of "$target")
        "$engine" image inspect "$image" >/dev/null 2>&1 \
            || fail "cannot start the stack: the image $image is missing. Build it:" \
                "make images${SPARK:+ SPARK=1}"
    done
    case ${BIND_ADDRESS:-127.0.0.1} in
        127.* | localhost | ::1 | \[::1\]) ;;
        *)
            echo "Warning: other hosts reach the gateways at $BIND_ADDRESS, without TLS and without a login. They" >&2
            echo "can read and write all topics. Use it only in a network that you trust." >&2 ;;
    esac
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    echo "Starting containers; this takes a minute or two"
    # Without --profile, compose takes the profiles of .env. Named services need none.
    started="--profile cluster ${MONITORING:+--profile monitoring} ${SPARK:+--profile spark}"
    case ${1:-} in quickstart | streaming) started="--profile $1" ;; esac
    # shellcheck disable=SC2086 # options
    if ! compose $started up -d "$@" >"$log" 2>&1; then
        explain "cannot start the stack:" "$(tail -n 15 "$log")"
    fi
    case ${1:-} in
        quickstart | streaming) wait_until_ready "$1" ;;
        *) wait_until_ready rlm-1 rlm-2 rlm-3 ${SPARK:+spark-worker} ;;
    esac
    [ -z "${MONITORING:-}" ] || echo "Dashboards: http://127.0.0.1:${GRAFANA_PORT:-3000}, user admin, password in" \
        "${GRAFANA_PASSWORD:-deploy/compose/grafana-password}. Alerts: http://127.0.0.1:${PROMETHEUS_PORT:-9090}/alerts"
}

# Fails with $1, the engine's message $2, and what to do about it.
explain() {
    case $2 in
        *address\ already\ in\ use* | *port\ is\ already\ allocated*) advice=$(port_advice "$2") ;;
        *o\ such\ image* | *manifest\ unknown* | *pull\ access\ denied* | *initializing\ source* | *nable\ to\ find\ image* \
            | *ailed\ to\ resolve\ reference* | *ailed\ to\ do\ request* | *toomanyrequests* | *registry-1.docker.io* | *auth.docker.io*)
            advice="An image is missing and cannot be pulled. Give the engine access to the registry, or name
another image: KAFKA_IMAGE=… STORE_IMAGE=… make up. Without any registry: make containers-here" ;;
        *ange\ of\ CPUs*) advice="This machine has one processor. Limit the containers to it: CPUS=1 make up" ;;
        *cgroup\ controller* | *cpu.max*)
            advice="The engine of this user may not limit processors. Allow it as root, then log in again:
mkdir -p /etc/systemd/system/user@.service.d; printf '[Service]\nDelegate=cpu cpuset io memory pids\n' \
>/etc/systemd/system/user@.service.d/delegate.conf; systemctl daemon-reload. Or start without these
limits: CPUS=0 make up" ;;
        *nhealthy* | *exited\ \(*)
            named='.*[Cc]ontainer "\{0,1\}\([A-Za-z0-9_.-]*\)"\{0,1\}'
            ended=$(printf '%s\n' "$2" | sed -n "s/$named is unhealthy.*/\1/p; s/$named exited ([0-9]*).*/\1/p")
            advice=$(volume_advice "$(printf '%s\n' "$ended" | tail -n 1)")
            advice=${advice:-A container is not healthy, or ended. Its log: deploy/stack.sh compose logs SERVICE} ;;
        *peration\ not\ permitted* | */etc/subuid*) advice=$(engine_advice "$2") ;;
        *) advice= ;;
    esac
    fail "$1" "$2" ${advice:+"$advice"}
}

# Clients know the gateways' ports, so these move to another address and not to other ports.
port_advice() {
    echo "A port is occupied. Find the program that uses it: ss -ltnp | grep -E ':(1909|3000|9090)'. Stop it, or publish"
    case $1 in
        *:9090*) echo "Prometheus at another port: PROMETHEUS_PORT=9091 MONITORING=1 make up" ;;
        *:3000*) echo "Grafana at another port: GRAFANA_PORT=3001 MONITORING=1 make up" ;;
        *)
            echo "the gateways at another address of this machine: BIND_ADDRESS=127.0.0.2 make up. Clients of this"
            echo "machine then need that address in /etc/hosts: 127.0.0.2 rlm-1 rlm-2 rlm-3 quickstart streaming" ;;
    esac
}

# Prints the owners of the mounts and what to do, if the container $1 may not use one of them.
volume_advice() {
    [ -n "$1" ] || return 0
    case $("$engine" logs --tail 50 "$1" 2>&1) in
        *ermission\ denied* | *AccessDeniedException* | *o\ credentials\ for\ the\ store*) ;;
        *) return 0 ;;
    esac
    user=$("$engine" inspect --format '{{.Config.User}}' "$1")
    mounts=$("$engine" inspect --format '{{range .Mounts}}{{println .Source}}{{end}}' "$1")
    echo "$1 may not use a volume or a file. The user of its image is ${user:-root}, and its mounts are:"
    printf '%s\n' "$mounts" | while read -r source; do
        [ -z "$source" ] || stat -c '  %n: owner %u:%g, mode %a' "$source" 2>/dev/null \
            || echo "  $source: this user cannot look it up"
    done
    rights=u:${user%%:*}:rX
    echo "As root, give the volume to that user: chown -R ${user:-0} DIRECTORY. A broker's log directory keeps"
    echo "its owner; let rlm read it: setfacl -R -m $rights,d:$rights DIRECTORY. With podman without rights"
    echo "of root, run these commands with podman unshare."
    checkout_advice "$mounts"
}

# Prints what to do if umask or SELinux prevents reading those mounts $1 that are files of the checkout.
checkout_advice() {
    for source in $(printf '%s\n' "$1" | sed -n 's|.*/deploy/|deploy/|p'); do
        case $(stat -c %A "$source" 2>/dev/null) in
            ???????---*)
                echo "Only its owner and group may read $source. Let all read it: chmod -R go+rX deploy"
                break ;;
        esac
    done
    if selinuxenabled 2>/dev/null; then
        echo "SELinux also needs a label on credentials: chcon -t container_file_t" \
            "${S3_CREDENTIALS:-deploy/compose/s3-credentials} ${GRAFANA_PASSWORD:-deploy/compose/grafana-password}"
    fi
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
            if [ $tries -eq 0 ]; then
                volumes=$(volume_advice "$(compose ps -a -q "$service" 2>/dev/null)")
                fail "cannot start the stack: $service is not ready after 2 minutes:" \
                    "$(compose logs --tail 5 "$service" 2>&1)" ${volumes:+"$volumes"} "$advice"
            fi
            sleep 2
        done
        echo "$service is ready"
    done
}

main "$@"
