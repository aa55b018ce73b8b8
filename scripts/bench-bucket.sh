# shellcheck shell=bash
# A part of scripts/bench: the main job with its cache in a bucket, beside the same with its cache in a folder.

# serve_bucket: starts an S3 server with nothing in it; sets bucket_pid and bucket_folder, and exports where it is and the keys.
serve_bucket() {
    local endpoint key secret
    # A short name: the server's sockets lie in it.
    bucket_folder=$(mktemp -d)
    TMPDIR=$bucket_folder scripts/s3-server "${RADOSGW_ROOT:-.build/radosgw}" >"$bucket_folder/out" 2>"$bucket_folder/errors" &
    bucket_pid=$!
    until grep -qs '^secret=' "$bucket_folder/out"; do
        kill -0 "$bucket_pid" 2>/dev/null || return 1
        sleep 0.1
    done
    { IFS== read -r _ endpoint; IFS== read -r _ key; IFS== read -r _ secret; } <"$bucket_folder/out"
    export AWS_ENDPOINT_URL=$endpoint AWS_ACCESS_KEY_ID=$key AWS_SECRET_ACCESS_KEY=$secret AWS_REGION=us-east-1
    unset AWS_SESSION_TOKEN
}

stop_bucket() {
    kill "$bucket_pid" 2>/dev/null || true
    wait "$bucket_pid" 2>/dev/null || true
    rm -rf "$bucket_folder"
    unset AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION WORKER_CACHE_FOLDER
}

# How many requests the server has answered, from its log.
requests() { grep -c 'beast: .* HTTP/1.1" ' "$bucket_folder"/s3-server-*/client.rgw.log || true; }

# fresh_store KIND: a new database and a new, empty cache of that kind.
fresh_store() {
    fresh
    [ "$1" = folder ] || export WORKER_CACHE=s3://bench/${round##*.} WORKER_CACHE_FOLDER=$round/cache
    "$worker" init >/dev/null
}

stored_run() {
    "$worker" enqueue -f "$state/urls.txt" "${variants[@]}" &&
        "$worker" run --drain --quiet --concurrency 6 --transforms 2 --allow-addresses loopback
}

# stored KIND: one timed run, and what it has done.
stored() {
    local before
    fresh_store "$1"
    before=$(requests)
    timed stored_run
    walls_of[$1]+="$wall " cpus_of[$1]+="$cpu " last_cpu[$1]=$cpu
    made[$1]=$(sqlite3 "$WORKER_DB" "SELECT sum(done) || ' of ' || sum(total) FROM jobs")
    [ "$1" = folder ] || asked+=("$(ratio $(($(requests) - before)) "$images")")
}

bench_bucket() {
    local i kind order asked=() ratios=()
    local -A walls_of=() cpus_of=() last_cpu=() made=() one=() all=()
    prepare
    variants=(--variant "v320=320x,webp,q80")
    for i in $(seq "$runs"); do
        # A new server for each pair: its store is in memory, and 2 GiB.
        if ! serve_bucket; then
            echo "bucket: skipped, since no S3 server starts here: $(tail -n 1 "$bucket_folder/errors")" >&2
            stop_bucket
            stop_serving
            return 0
        fi
        # Each goes first in half of the pairs.
        order="folder bucket"
        [ $((i % 2)) -eq 1 ] || order="bucket folder"
        for kind in $order; do stored "$kind"; done
        ratios+=("$(ratio "${last_cpu[bucket]}" "${last_cpu[folder]}")")
        if [ "$i" -eq "$runs" ]; then
            for kind in folder bucket; do
                fresh_store "$kind"
                peak stored_run
                one[$kind]=$peak_one all[$kind]=$peak_all
            done
        fi
        stop_bucket
    done
    echo
    echo "The main job with its cache in a bucket of an S3 server on this machine, whose CPU does not count; beside a cache in a folder"
    for kind in folder bucket; do
        # Words, not one argument.
        # shellcheck disable=SC2086
        echo "  $kind  wall $(spread ${walls_of[$kind]}) s, CPU $(spread ${cpus_of[$kind]}) s, memory ${one[$kind]} MiB in its largest process, ${all[$kind]} MiB in all; done ${made[$kind]}"
    done
    echo "  CPU, bucket to folder: $(spread "${ratios[@]}"), at most 1.15 wanted; requests an image: $(spread "${asked[@]}")"
    stop_serving
    sweep
}
