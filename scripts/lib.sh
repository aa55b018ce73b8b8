# shellcheck shell=bash
# What scripts share: the built program, the built tests, photographs, and a web server on loopback.

# Builds all tests and the program that they run, optimised as the program that users have; sets tests_folder and tests_bundle.
# They have a folder of their own, since their modules can be looked into.
build_tests() {
    # Debug information would take a part of the build's time, and nothing reads it.
    local flags=(-c release --scratch-path ".build/tests${FAST_SUITES:+-fast}" -debug-info-format none)
    TESTS_FOR_RELEASE=1 swift build --build-tests "${flags[@]}" 2> >(grep -v 'prohibited flag' >&2) || return 1
    tests_folder=$PWD/.build/tests${FAST_SUITES:+-fast}/release
    tests_bundle=$tests_folder/PrefetchWorkerPackageTests.xctest
}

# Builds the release worker and prints its path.
release_worker() {
    # The Swift libraries are linked in: a program that scripts call often starts five times as fast.
    local product
    for product in worker worker-helper; do
        swift build -c release --product "$product" --static-swift-stdlib 2> >(grep -v 'prohibited flag' >&2) >&2 || return 1
    done
    echo "$(swift build -c release --static-swift-stdlib --show-bin-path 2>/dev/null)/worker"
}

# photographs FOLDER: fills it with the JPEGs of Debian's mate-backgrounds, unpacked and not installed.
photographs() {
    local folder=$1 unpacked
    [ -n "$(find "$folder" -name '*.jpg' -print -quit 2>/dev/null)" ] && return
    unpacked=$(mktemp -d)
    mkdir -p "$folder"
    if ! (cd "$unpacked" && apt-get download -qq mate-backgrounds 2>/dev/null); then
        [ "$(id -u)" -eq 0 ] && apt-get update -qq
        (cd "$unpacked" && apt-get download -qq mate-backgrounds) || {
            echo "The photographs can't be downloaded: run 'apt-get update' as root, or name a folder of your own." >&2
            return 1
        }
    fi
    dpkg -x "$unpacked"/mate-backgrounds_*.deb "$unpacked"
    find "$unpacked" -name '*.jpg' -size -4M -exec cp {} "$folder" \;
    rm -rf "$unpacked"
}

# serve FOLDER STATE: starts nginx on a free port of 127.0.0.1; sets origin_url and origin_pid.
serve() {
    local folder state port
    folder=$(realpath "$1")
    state=$(realpath "$2")
    mkdir -p "$state/tmp"
    # Started by root, nginx would serve as a user that can't look into root's home, where a clone often is.
    local user=''
    [ "$(id -u)" -ne 0 ] || user='user root;'
    for _ in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 20000))
        cat >"$state/nginx.conf" <<NGINX
$user
daemon off;
worker_processes 1;
pid $state/nginx.pid;
error_log $state/error.log;
events { worker_connections 1024; }
http {
    access_log $state/access.log;
    types { image/jpeg jpg jpeg; image/png png; image/webp webp; image/gif gif; image/avif avif; image/heic heic; }
    default_type application/octet-stream;
    client_body_temp_path $state/tmp; proxy_temp_path $state/tmp; fastcgi_temp_path $state/tmp;
    uwsgi_temp_path $state/tmp; scgi_temp_path $state/tmp;
    sendfile on;
    server { listen 127.0.0.1:$port; root "$folder"; }
}
NGINX
        PATH=$PATH:/usr/sbin nginx -c "$state/nginx.conf" -e "$state/error.log" 2>/dev/null &
        origin_pid=$!
        origin_url=http://127.0.0.1:$port
        for _ in $(seq 50); do
            curl --silent --output /dev/null "$origin_url/" && return
            kill -0 "$origin_pid" 2>/dev/null || break
            sleep 0.1
        done
    done
    echo "nginx doesn't start; see $state/error.log" >&2
    return 1
}

stop_serving() {
    [ -n "${origin_pid:-}" ] || return 0
    kill "$origin_pid" 2>/dev/null || true
    wait "$origin_pid" 2>/dev/null || true
    origin_pid=
}
