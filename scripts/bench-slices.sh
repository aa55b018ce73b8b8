# shellcheck shell=bash
# A part of scripts/bench: how long upkeep holds the database's write lock while it works through tens of thousands of files.

# Asks for the lock again and again without waiting, until FILE is there, and tells the longest time that another program held it.
watch_lock() {
    python3 - "$WORKER_DB" "$1" <<'PYTHON'
import os, sqlite3, sys, time
database, stop = sys.argv[1:]
connection = sqlite3.connect(database, timeout=0, isolation_level=None)
held, since = [], None
while not os.path.exists(stop):
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        if since is not None: held.append(time.monotonic() - since)
        since = None
        time.sleep(0.0003)
    except sqlite3.OperationalError:
        since = since or time.monotonic()
held = sorted(held) or [0]
print(f"held {len(held)} times, {sum(time > 0.05 for time in held)} of them over 50 ms; "
      f"median {held[len(held) // 2] * 1000:.0f} ms, longest {held[-1] * 1000:.0f} ms")
PYTHON
}

bench_slices() {
    local what watcher
    small 20000
    fresh
    "$worker" enqueue -f "$state/urls.txt" --option avoid-decode-image >/dev/null
    download_run >/dev/null
    echo
    echo "The write lock, while 20,000 files and items go"
    for what in "cache gc --cache-max-size 1KiB" "prune --older-than 0s --yes"; do
        rm -f "$round/stop"
        watch_lock "$round/stop" >"$round/watched" &
        watcher=$!
        sleep 0.3
        # Words, not one argument.
        # shellcheck disable=SC2086
        timed "$worker" $what
        touch "$round/stop"
        wait "$watcher"
        echo "  $what, $wall s: $(cat "$round/watched")"
    done
    stop_serving
    sweep
}
