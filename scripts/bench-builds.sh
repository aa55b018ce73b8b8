# shellcheck shell=bash
# A part of scripts/bench: this build of the worker against another one. It tells whether a change has made it slower.

bench_builds() {
    [ -x "${OTHER:-}" ] || { echo "Name the other worker, as in: OTHER=../before/worker scripts/bench builds" >&2; return 64; }
    echo
    echo "This build against $OTHER: the ratio of each pair, as median (lowest to highest); below 1, this build is faster"
    prepare
    two_builds "600 photographs to 320 px WebP" --variant v320=320x,webp,q80
    two_builds "the same to 160, 320, 640 px" --variant v160=160x,webp,q80 --variant v320=320x,webp,q80 --variant v640=640x,webp,q80
    stop_serving
    sweep
    small 5000
    two_builds "5,000 of 10 KB, kept unseen" --option avoid-decode-image
    two_builds "5,000 of 10 KB, decoded"
    stop_serving
    sweep
    small 10000
    keep_one_cache_each
    again="1" two_builds "10,000 answers 304" --option refresh-cached
    again="1 2 3 4 5 6 7 8 9 10" two_builds "100,000 cached URLs"
    stop_serving
    sweep
}

# two_builds TITLE OPTIONS…: runs the listed URLs with both builds in turns, each from an empty cache. With `again`, each from
# its own cache, and as many jobs at once as that has words.
two_builds() {
    local title=$1 i build order job this=$worker again=${again:-} walls=() cpus=()
    local -A wall_of cpu_of
    shift
    for i in $(seq "$runs"); do
        # Each goes first in half of the pairs: the second finds files in the page cache.
        order="this other"
        [ $((i % 2)) -eq 1 ] || order="other this"
        for build in $order; do
            worker=$this
            [ "$build" = this ] || worker=$OTHER
            if [ -z "$again" ]; then fresh; else export WORKER_DB=$state/$build/worker.db WORKER_CACHE=$state/$build/cache; fi
            for job in ${again:-once}; do "$worker" enqueue -f "$state/urls.txt" "$@" --name "$job" >/dev/null 2>&1; done
            timed download_run
            wall_of[$build]=$wall cpu_of[$build]=$cpu
        done
        walls+=("$(ratio "${wall_of[this]}" "${wall_of[other]}")") cpus+=("$(ratio "${cpu_of[this]}" "${cpu_of[other]}")")
    done
    worker=$this
    printf '  %-32s wall %s, CPU %s; the last took %s s\n' "$title" "$(spread "${walls[@]}")" "$(spread "${cpus[@]}")" "${wall_of[this]}"
}

# A cache for each build, with the listed URLs in it.
keep_one_cache_each() {
    local build this=$worker
    for build in this other; do
        worker=$this
        [ "$build" = this ] || worker=$OTHER
        rm -rf "${state:?}/$build"
        mkdir "$state/$build"
        export WORKER_DB=$state/$build/worker.db WORKER_CACHE=$state/$build/cache
        "$worker" enqueue -f "$state/urls.txt" >/dev/null
        download_run >/dev/null
    done
    worker=$this
}
