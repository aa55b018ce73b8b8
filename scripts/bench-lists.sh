# shellcheck shell=bash
# A part of scripts/bench: how long worker enqueue takes for a long list, and its memory.

bench_lists() {
    local i times=() most=0 peak list=$state/list.csv
    [ -s "$list" ] || awk 'BEGIN { print "sku,image"; for (n = 0; n < 1000000; n++) printf "%d,http://images.example.com/pictures/%07d.jpg\n", n, n }' >"$list"
    echo
    echo "A CSV of 1,000,000 lines into the queue"
    for i in $(seq "$runs"); do
        rm -rf "$WORKER_DB" "$WORKER_DB-wal" "$WORKER_DB-shm"
        sync
        read -r wall peak < <(python3 - "$worker" enqueue -f "$list" <<'PYTHON'
import resource, subprocess, sys, time
begun = time.monotonic()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(round(time.monotonic() - begun, 2), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
PYTHON
        )
        times+=("$wall")
        [ "$peak" -le "$most" ] || most=$peak
    done
    echo "  $(spread "${times[@]}") s, peak $most MiB"
}
