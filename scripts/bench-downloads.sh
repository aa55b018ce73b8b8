# shellcheck shell=bash
# Parts of scripts/bench: small files that are downloaded and confirmed, a million URLs, and hosts that answer nothing.

# small COUNT: serves that many different files of 10 KB, and lists them for the worker, curl and aria2.
small() {
    local count=$1 folder=$state/small
    if [ "$(find "$folder" -type f 2>/dev/null | wc -l)" -ne "$count" ]; then
        rm -rf "$folder"
        mkdir -p "$folder"
        # The smallest PNG there is, and 10,000 bytes behind its end that differ in each.
        python3 - "$folder" "$count" <<'PYTHON'
import random, struct, sys, zlib
folder, count = sys.argv[1], int(sys.argv[2])
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
head += chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")
random.seed(1)
for n in range(count):
    with open(f"{folder}/{n:05}.png", "wb") as file: file.write(head + random.randbytes(10_000))
PYTHON
    fi
    serve "$folder" "$state"
    find "$folder" -type f -printf "$origin_url/%f\n" | sort >"$state/urls.txt"
    awk -v dir="$state/peer/" '{ n = split($0, a, "/"); print "url = \"" $0 "\"\noutput = \"" dir a[n] "\"" }' \
        "$state/urls.txt" >"$state/curl.txt"
}

download_run() {
    "$worker" run --drain --quiet --concurrency 6 --transforms 2 --allow-addresses loopback
}

curl_run() { curl --silent --parallel --parallel-max 6 --config "$round/curl.txt"; }
aria_run() { aria2c --quiet --max-concurrent-downloads=6 --input-file="$state/urls.txt" --dir="$round/aria"; }

# fresh: a new folder for each round. Nothing is deleted before the end: a file system without a journal is slow for a minute
# with files whose numbers were in use just before.
fresh() {
    round=$(mktemp -d "$state/round.XXXXXX")
    export WORKER_DB=$round/worker.db WORKER_CACHE=$round/cache
    mkdir "$round/peer"
    sed "s|$state/peer/|$round/peer/|" "$state/curl.txt" >"$round/curl.txt"
}

sweep() {
    rm -rf "$state"/round.*
    export WORKER_DB=$state/worker.db WORKER_CACHE=$state/cache
}

# 5,000 files of 10 KB, the worker's stored durably and entered in the index; each decoded once, as a job's sources are, and not,
# as with avoid-decode-image.
bench_downloads() {
    local i seen=() ours=() curls=() arias=() seen_cpu=() ours_cpu=() curls_cpu=() seen_to_curl=() to_curl=() to_aria=()
    small 5000
    echo
    echo "5,000 files of 10 KB"
    printf '%6s %12s %12s %12s %12s\n' round decoded unseen curl aria2
    for i in $(seq "$runs"); do
        fresh
        "$worker" enqueue -f "$state/urls.txt" >/dev/null
        timed download_run
        seen+=("$wall") seen_cpu+=("$cpu")
        fresh
        "$worker" enqueue -f "$state/urls.txt" --option avoid-decode-image >/dev/null
        timed download_run
        ours+=("$wall") ours_cpu+=("$cpu")
        timed curl_run
        curls+=("$wall") curls_cpu+=("$cpu")
        timed aria_run
        arias+=("$wall")
        seen_to_curl+=("$(ratio "${seen[-1]}" "${curls[-1]}")")
        to_curl+=("$(ratio "${ours[-1]}" "${curls[-1]}")") to_aria+=("$(ratio "${ours[-1]}" "${arias[-1]}")")
        printf '%6s %10s s %10s s %10s s %10s s\n' "$i" "${seen[-1]}" "${ours[-1]}" "${curls[-1]}" "${arias[-1]}"
    done
    echo "  wall    unseen $(median "${ours[@]}") s, ratio to curl $(spread "${to_curl[@]}"), to aria2 $(spread "${to_aria[@]}")"
    echo "          decoded $(median "${seen[@]}") s, ratio to curl $(spread "${seen_to_curl[@]}")"
    echo "  CPU     unseen $(median "${ours_cpu[@]}") s, decoded $(median "${seen_cpu[@]}") s, curl $(median "${curls_cpu[@]}") s"
    echo "  done    $(sqlite3 "$WORKER_DB" "SELECT sum(done) || ' of ' || sum(total) FROM jobs")"
    stop_serving
    sweep
}

# 10,000 sources that are cached, each asked for with its validators and answered 304.
bench_revalidate() {
    local i ours=() curls=() ours_cpu=() curls_cpu=() ratios=()
    small 10000
    fresh
    "$worker" enqueue -f "$state/urls.txt" >/dev/null
    download_run >/dev/null
    echo
    echo "10,000 revalidations"
    for i in $(seq "$runs"); do
        "$worker" enqueue -f "$state/urls.txt" --option refresh-cached >/dev/null
        timed download_run
        ours+=("$(ratio 10000 "$wall")") ours_cpu+=("$cpu")
        timed curl_run
        curls+=("$(ratio 10000 "$wall")") curls_cpu+=("$cpu")
        ratios+=("$(ratio "${ours[-1]}" "${curls[-1]}")")
    done
    echo "  worker $(median "${ours[@]}") a second, curl's requests $(median "${curls[@]}") a second, ratio $(spread "${ratios[@]}")"
    echo "  CPU     worker $(median "${ours_cpu[@]}") s, curl $(median "${curls_cpu[@]}") s"
    echo "  answered 304: $(awk '$9 == 304' "$state/access.log" | wc -l)"
    stop_serving
    sweep
}

# Two hosts, one of which takes requests and says nothing: how long the other's files take, beside it and alone.
bench_hosts() {
    local i alone=() beside=() ratios=() silent port
    small 5000
    port=$((40000 + RANDOM % 9000))
    python3 -c "
import socket, time
listener = socket.create_server(('127.0.0.1', $port), backlog=512)
kept = []
while True: kept.append(listener.accept())" &
    silent=$!
    sed "s/127.0.0.1/localhost/" "$state/urls.txt" >"$state/healthy.txt"
    echo
    echo "5,000 files of 10 KB from a healthy host, beside 5,000 URLs of one that says nothing"
    for i in $(seq "$runs"); do
        alone+=("$(host_seconds)") beside+=("$(host_seconds "$port")")
        ratios+=("$(ratio "${alone[-1]}" "${beside[-1]}")")
    done
    kill "$silent"
    wait "$silent" 2>/dev/null || true
    echo "  alone $(median "${alone[@]}") s, beside it $(median "${beside[@]}") s; throughput $(median "${ratios[@]}") of what it has alone"
    stop_serving
    sweep
}

# host_seconds [PORT]: seconds from the first claim to the end of the healthy host's job. It gives up after two minutes, and
# tells how far things came.
host_seconds() {
    local pid deadline=$((SECONDS + 120))
    fresh
    if [ $# -gt 0 ]; then seq 5000 | sed "s|^|http://127.0.0.1:$1/|" | "$worker" enqueue -f - >/dev/null; fi
    "$worker" enqueue -f "$state/healthy.txt" --name healthy >/dev/null
    "$worker" run --quiet --concurrency 6 --transforms 2 --allow-addresses loopback >/dev/null 2>"$state/err" &
    pid=$!
    until [ "$(ask_hosts "SELECT finished_at IS NOT NULL FROM jobs WHERE name = 'healthy'")" = 1 ]; do
        if ! kill -0 "$pid" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
            echo "the healthy host's job doesn't end:" >&2
            { cat "$state/err"; ask_hosts "SELECT * FROM progress"; } >&2
            break
        fi
        sleep 0.1
    done
    ask_hosts "SELECT (max(finished_at) - (SELECT min(started_at) FROM jobs)) / 1000.0 FROM jobs WHERE name = 'healthy'"
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" || true
}

# A look that finds the database busy is made again.
ask_hosts() { sqlite3 "$WORKER_DB" '.timeout 20000' "$1" || true; }

bench_million() {
    local pid started insert status_ms i high="?" highest times=()
    rm -rf "$WORKER_DB" "$WORKER_DB-wal" "$WORKER_DB-shm" "$WORKER_CACHE"
    "$worker" init >/dev/null
    echo
    echo "1,000,000 URLs enqueued by one statement"
    timed sqlite3 "$WORKER_DB" "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
        INSERT INTO jobs (name, urls) SELECT 'million', json_group_array('http://127.0.0.1:9/images/photo-' || i || '.jpg') FROM n"
    insert=$wall
    for i in 1 2 3 4 5; do
        timed "$worker" status
        times+=("$wall")
    done
    status_ms=$(awk -v t="$(median "${times[@]}")" 'BEGIN { printf "%.0f", t * 1000 }')
    echo "  enqueue $insert s, worker status $status_ms ms"
    # Nothing listens there, so that every item ends as fast as it can: the queue alone is what is measured.
    "$worker" run --drain --quiet --max-tries 1 --allow-addresses loopback >/dev/null 2>&1 &
    pid=$!
    started=$SECONDS
    while kill -0 $pid 2>/dev/null && [ $((SECONDS - started)) -lt "${MILLION_SECONDS:-60}" ]; do
        highest=$(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$pid/status" 2>/dev/null || true)
        [ -z "$highest" ] || high=$highest
        sleep 1
    done
    echo "  after $((SECONDS - started)) s of work: $(sqlite3 "$WORKER_DB" "SELECT ended FROM progress") ended, worker process peak $high MiB"
    kill -TERM $pid 2>/dev/null || true
    wait $pid || true
}
